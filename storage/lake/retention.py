"""The versions of a corpus that are kept: the tagged ones, and all from the horizon on.

Both are rows of the table `retention`, which its first tag or compaction makes. Of two changes decided at the same time
the second is decided again: a version cannot be tagged while it is being given up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from parquetry.errors import PublishConflict, SettingsError
from parquetry.storage.files.layout import Layout, Version
from parquetry.storage.lake.change_log import Changes, append_change, read_changes
from parquetry.storage.lake.publishing import publish_with_retry

TAG_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""name of a tag: never only digits, which name a version"""
_NUMBER = re.compile(r"[+-]?\d{1,18}")
_TAG, _UNTAG, _HORIZON = "tag", "untag", "horizon"


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a version, which is kept as long as it has one."""

    name: str
    version: int
    """version of `documents`"""
    at: datetime
    """time of the tagging, UTC"""


@dataclass(frozen=True, slots=True)
class Retained:
    """The versions that are kept."""

    tags: tuple[Tag, ...] = ()
    """by name"""
    horizon: int = 0
    """lowest version from which on all are kept; never falls"""
    changes: Changes = field(default_factory=Changes)
    """changes behind it"""

    def keeps(self, version: int) -> bool:
        """True if a version is kept."""
        return version >= self.horizon or version in {tag.version for tag in self.tags}

    def names_of(self, version: int) -> list[str]:
        """Return the tags of a version, by name."""
        return [tag.name for tag in self.tags if tag.version == version]


def read_retention(layout: Layout) -> Retained:
    """Return the versions that a corpus keeps.

    Raises:
        DamagedCorpus: the table is damaged; nothing can be given up then.
        StorageError: the table cannot be read.
    """
    changes = read_changes(layout, "retention", "the versions that are kept are not known")
    tags: dict[str, Tag] = {}
    horizon = 0
    for row in changes.rows:
        if row["kind"] == _TAG:
            tags[row["name"]] = Tag(row["name"], row["version"], row["at"])
        elif row["kind"] == _UNTAG:
            tags.pop(row["name"], None)
        else:
            horizon = max(horizon, row["version"])
    return Retained(tuple(tags[name] for name in sorted(tags)), horizon, changes)


def add_tag(layout: Layout, name: str, version: int, at: datetime) -> Retained:
    """Name a version that can be read; it is kept until the tag is deleted.

    Args:
        layout: layout of the corpus, open for writing.
        name: name of the tag.
        version: version of `documents`.
        at: present time, UTC.

    Raises:
        SettingsError: the name is not valid or that of another version, or the version is not kept any more.
        PublishConflict: other programs kept changing what is kept.
        StorageError: the tag cannot be written.
    """
    if not TAG_NAME.fullmatch(name):
        raise SettingsError(
            f"tag {name!r}: a name has letters, digits, dots, dashes and underscores, and not only digits"
        )

    def decide(known: Retained) -> tuple[str, str | None, int] | None:
        check_kept(layout, known, version)
        held = next((tag for tag in known.tags if tag.name == name), None)
        if held is not None and held.version != version:
            raise SettingsError(
                f"tag {name} names version {held.version}; delete it first (`parquetry tag {name} --delete`)"
            )
        return None if held else (_TAG, name, version)

    return _change(layout, decide, at)


def delete_tag(layout: Layout, name: str, at: datetime) -> Retained:
    """Delete a tag; its version is kept no longer than any other.

    Raises:
        SettingsError: there is no such tag.
        PublishConflict, StorageError: as for `add_tag`.
    """

    def decide(known: Retained) -> tuple[str, str | None, int] | None:
        return _UNTAG, name, version_tagged(layout, known, name)

    return _change(layout, decide, at)


def raise_horizon(layout: Layout, version: int, at: datetime) -> Retained:
    """Give up the versions below the given one that have no tag.

    Args:
        layout: layout of the corpus, open for writing.
        version: lowest version from which on all are kept.
        at: present time, UTC.

    Returns:
        What is kept from now on.

    Raises:
        PublishConflict, StorageError: as for `add_tag`.
    """

    def decide(known: Retained) -> tuple[str, str | None, int] | None:
        return (_HORIZON, None, version) if version > known.horizon else None

    return _change(layout, decide, at) if version > 0 else read_retention(layout)


def number_of_version(layout: Layout, version: Version, newest: int) -> int:
    """Return the number of a version that is kept.

    Args:
        layout: layout of the corpus.
        version: its number, also as text, or one of its tags.
        newest: number of the newest version.

    Raises:
        SettingsError: there is no such version or tag, or the version is not kept any more.
        StorageError: this cannot be determined.
    """
    kept = read_retention(layout)
    is_name = isinstance(version, str) and not _NUMBER.fullmatch(version)
    number = version_tagged(layout, kept, str(version)) if is_name else int(version)
    if not 0 <= number <= newest:
        raise SettingsError(f"corpus {layout.root} has no version {number}; it has 0 to {newest}")
    check_kept(layout, kept, number)
    return number


def version_tagged(layout: Layout, known: Retained, name: str) -> int:
    """Return the version that a tag names.

    Raises:
        SettingsError: there is no such tag; names the existing ones.
    """
    found = next((tag.version for tag in known.tags if tag.name == name), None)
    if found is None:
        there = ", ".join(tag.name for tag in known.tags) or "none"
        raise SettingsError(f"corpus {layout.root} has no tag {name!r}; it has {there}")
    return found


def check_kept(layout: Layout, known: Retained, version: int) -> None:
    """Check that a version was not given up.

    Raises:
        SettingsError: it is below the horizon, and has no tag.
    """
    if not known.keeps(version):
        raise SettingsError(
            f"version {version} of corpus {layout.root} is not kept any more: its oldest are {known.horizon} and those "
            "with a tag (`[retention]` says how long)"
        )


def _change(layout: Layout, decide: Callable[[Retained], tuple[str, str | None, int] | None], at: datetime) -> Retained:
    """Append what is decided on the present state; decide again if another program was first."""

    def attempt(_: PublishConflict | None) -> Retained:
        known = read_retention(layout)
        decided = decide(known)
        if decided is None:
            return known
        kind, name, number = decided
        values = {"kind": kind, "name": name, "version": number, "at": at.astimezone(UTC)}
        append_change(layout, "retention", known.changes, values, "another program changed what is kept meanwhile")
        return read_retention(layout)

    return publish_with_retry(attempt, "what is kept was not changed; try again")
