"""Nested sources: the owner of a document when two sources contain its place."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parquetry.errors import SettingsError
from parquetry.model import LeftOut
from parquetry.plural import counted
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.names import printable
from parquetry.sources.paths import chain, ways
from parquetry.sources.selection import Selection

if TYPE_CHECKING:
    from parquetry.settings.source import SourceSettings

_SAME_KIND: Mapping[str, str] = {"abfss": "abfs", "az": "abfs", "gcs": "gs", "s3a": "s3"}
_PAGES = frozenset({"http", "https"})
"""kinds of sources with documents that need not be below the source's address"""
_NO_PLACE = frozenset({"archives", "access", "permissions"})
"""options that do not affect the location of a source"""
_SHOWN = 3
"""number of sources listed in one line"""


@dataclass(frozen=True, slots=True)
class Spot:
    """Location of a source in comparable form."""

    kind: str
    reach: str
    """server or account, as far as URL, options and environment specify it"""
    parts: tuple[str, ...]
    """parts of the path, from the root of the filesystem, the bucket or the host"""

    def below(self, other: Spot) -> str | None:
        """Return the path from another spot to this one: empty if they are equal, None if this one is not within it."""
        same = (self.kind, self.reach) == (other.kind, other.reach)
        if not same or self.parts[: len(other.parts)] != other.parts:
            return None
        return "/".join(self.parts[len(other.parts) :])


def spot_of(uri: str, options: Mapping[str, Any] | None = None) -> Spot:
    """Return the spot of a source.

    Args:
        uri: path or URL; a relative path is resolved against the working folder.
        options: the table `[source.options]`.
    """
    options = options or {}
    if is_local(uri):
        return Spot("file", "", tuple(map(printable, Path(os.path.realpath(local_path(uri))).parts)))
    scheme, _, rest = uri.partition("://")
    kind = _SAME_KIND.get(scheme.lower(), scheme.lower())
    if kind in _PAGES:
        return Spot("web", "", (uri.rstrip("/"),))
    parts = rest.rstrip("/").split("/")
    match kind:
        case "s3":
            reach = options.get("endpoint_url") or _environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        case "abfs":
            parts[0], _, host = parts[0].partition("@")
            # What names the account, not its name: the sources of one account name it in the same way.
            account = options.get("account_name") or options.get("connection_string")
            account = account or _environment("AZURE_STORAGE_ACCOUNT_NAME")
            reach = host.partition(".")[0] or account
        case "gs":
            reach = options.get("endpoint_url") or ""
        case _:
            # All options of the filesystem count: with other options it may be another place.
            reach = repr(sorted((key, repr(value)) for key, value in options.items() if key not in _NO_PLACE))
    return Spot(kind, str(reach), tuple(parts))


def _environment(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name))), "")


@dataclass(frozen=True, slots=True)
class Inner:
    """Part of a source that belongs to another source."""

    path: str
    """path within the outer source; empty if both have the same place"""
    source: str
    namespace: str
    include: tuple[str, ...] = field(default=())
    exclude: tuple[str, ...] = field(default=())
    """with an empty path: globs of the documents that belong to the other source"""


def inner_of(source: SourceSettings, others: Iterable[tuple[SourceSettings, str]]) -> tuple[Inner, ...]:
    """Return the parts of a source that belong to others: sources nested in it, and earlier ones of the same place.

    Args:
        source: the outer source. An earlier source of the same place owns the documents that it includes.
        others: further sources with their namespaces, in the order of the settings; `source` itself may be among them.
    """
    here = spot_of(source.uri, source.options)
    found: list[Inner] = []
    earlier = True
    for other, namespace in others:
        if other is source:
            earlier = False
            continue
        path = spot_of(other.uri, other.options).below(here)
        if path:
            found.append(Inner(path, other.name, namespace))
        elif path == "" and earlier and source.include and other.include:
            found.append(Inner("", other.name, namespace, other.include, other.exclude))
    return tuple(found)


class Owners:
    """Maps documents of a source to the nested sources that own them.

    Args:
        inner: the nested sources.
    """

    def __init__(self, inner: Sequence[Inner]) -> None:
        self._by_path = {each.path: each for each in inner if each.path}
        self._same_place = [(each, Selection(each.include, each.exclude)) for each in inner if not each.path]

    def of(self, path: str, *, document: bool = True) -> Inner | None:
        """Return the source that owns a path; None if the outer source does.

        Args:
            path: within the outer source.
            document: False for a place that can only be judged as a whole.
        """
        if self._by_path:
            for above in ways(path):
                if above in self._by_path:
                    return self._by_path[above]
        if document and self._same_place:
            file = chain(path)[0]
            for inner, selection in self._same_place:
                if not selection.leaves_out(file):
                    return inner
        return None


def left_out(found: Mapping[Inner, int]) -> tuple[LeftOut, ...]:
    """Return the documents that a source leaves to others, the source with the most documents first."""
    return tuple(LeftOut(each.path, each.source, count) for each, count in Counter(found).most_common())


def told(source: str, left: Sequence[LeftOut]) -> str:
    """Summarise in one line the documents that a source leaves to others."""
    shown = [
        f"{counted(each.documents, 'document')} to source {each.source}" + (f" ({each.path})" if each.path else "")
        for each in left[:_SHOWN]
    ]
    rest = left[_SHOWN:]
    more = f", and {sum(each.documents for each in rest)} to {len(rest)} more" if rest else ""
    return f"source {source} leaves {', '.join(shown)}{more}"


def place_in(uri: str, path: str) -> str:
    """Format the place of a path within a source for display."""
    root = uri.rstrip("/")
    # A source may be a single file; its path is then the file's name.
    return f"{root}/{path}" if path and not root.endswith(f"/{path}") else uri


def check_uploads(sources: Sequence[SourceSettings], uri: str, origin: str) -> None:
    """Refuse uploads within a source, which would index their bytes and manifests as documents.

    Raises:
        SettingsError: a source contains the place.
    """
    place = spot_of(uri)
    for source in sources:
        if place.below(spot_of(source.uri, source.options)) is not None:
            raise SettingsError(
                f"{origin}: [uploads] uri is within source {source.name}, which would index what is kept there; choose "
                "a place outside all sources"
            )


def check_places(sources: Sequence[SourceSettings], lines: Sequence[int], origin: str) -> None:
    """Refuse two sources with the same place, unless include globs divide it between them.

    Args:
        sources: configured sources, with absolute places.
        lines: line of each `uri` in the file, 1-based.
        origin: name of the file.

    Raises:
        SettingsError: two sources share a place; the message names the line to change.
    """
    seen: dict[Spot, tuple[SourceSettings, int]] = {}
    for source, line in zip(sources, lines, strict=True):
        spot = spot_of(source.uri, source.options)
        if spot not in seen:
            seen[spot] = source, line
            continue
        first, above = seen[spot]
        if not (first.include and source.include) or set(first.include) == set(source.include):
            raise SettingsError(
                f"{origin}, line {line}: source {source.name} has the place of source {first.name} (line {above}), and "
                "its documents would be indexed twice; change this uri, remove one of the two, or give both include "
                "globs that differ"
            )
