"""Command-line options that filter documents and set the caller."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from parquetry.errors import SettingsError
from parquetry.model import What
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.where import parse_where

NamespacesOption = Annotated[
    list[str] | None, typer.Option("--namespace", metavar="NAME", help="One part of the corpus; may be repeated.")
]
FilenameOption = Annotated[str | None, typer.Option(metavar="GLOB", help="Only files of this name or path.")]
TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only documents with this tag; if repeated, with all of them."),
]
AnyTagsOption = Annotated[
    list[str] | None,
    typer.Option("--any-tag", metavar="TAG", help="Only documents with at least one of these tags."),
]
MediaTypeOption = Annotated[
    str | None, typer.Option(metavar="TYPE", help="Only documents of this media type, as in `show`.")
]
SourceOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only documents of this source.")]
SinceOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Modified at this time or later: 2031-03-01, 2031-03-01T09:30Z, or 30d ago."),
]
UntilOption = Annotated[str | None, typer.Option(metavar="TIME", help="Modified before this time.")]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="PATH=VALUE", help="Only documents with this metadata, e.g. author.name=Ada."),
]
WhereOption = Annotated[
    str | None, typer.Option(metavar="SQL", help='Only documents for which this holds, as "pages > 10".')
]
TypeOption = Annotated[
    What, typer.Option("--type", help="Documents, entries (learned from chats), or both in one ranking.")
]
UserOption = Annotated[str | None, typer.Option(metavar="NAME", help="On behalf of this user.")]
OrgOption = Annotated[str | None, typer.Option(metavar="NAME", help="On behalf of a member of this organization.")]

_AGE = re.compile(r"(\d{1,6})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def caller_of(user: str | None, org: str | None) -> Caller | None:
    """Return the caller a command runs for; None for the operator, who sees everything.

    An empty name, such as an unset variable, matches no user: such a caller sees public documents only.
    """
    return None if user is None and org is None else Caller(user, org)


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The options that filter documents, as given on the command line."""

    namespace: NamespacesOption = None
    filename: FilenameOption = None
    tag: TagsOption = None
    any_tag: AnyTagsOption = None
    media_type: MediaTypeOption = None
    source: SourceOption = None
    since: SinceOption = None
    until: UntilOption = None
    metadata: MetadataOption = None
    where: WhereOption = None
    user: UserOption = None
    org: OrgOption = None

    def filters(self, what: What = "documents") -> Filters:
        """Build the filters.

        Raises:
            SettingsError: an option is invalid; the message names it.
        """
        if self.where is not None:
            parse_where(self.where)
        return Filters(
            namespaces=tuple(self.namespace or ()),
            filename=self.filename,
            tags=tuple(self.tag or ()),
            any_tags=tuple(self.any_tag or ()),
            media_type=self.media_type,
            source=self.source,
            since=None if self.since is None else moment(self.since, "--since"),
            until=None if self.until is None else moment(self.until, "--until"),
            metadata=tuple(_pair(each) for each in self.metadata or ()),
            where=self.where,
            what=what,
            caller=caller_of(self.user, self.org),
        )


def moment(text: str, option: str, now: datetime | None = None) -> datetime:
    """Parse a point in time.

    Args:
        text: ISO date or time, in UTC if it names no zone, or an age: `12h`, `30d`, `2w`.
        option: name of the option, for the message.
        now: reference time for ages; None for the current time.

    Raises:
        SettingsError: the text is neither.
    """
    age = _AGE.fullmatch(text)
    try:
        if age:
            return (now or datetime.now(UTC)) - int(age[1]) * _UNITS[age[2]]
        read = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise SettingsError(
            f"{option} {text!r} is no time; write 2031-03-01, 2031-03-01T09:30Z, or an age as 12h, 30d, 2w"
        ) from error
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _pair(text: str) -> tuple[str, str]:
    path, equals, value = text.partition("=")
    if not equals:
        raise SettingsError(f"--metadata {text!r} has no value; write PATH=VALUE, as author.name=Ada")
    return path, value
