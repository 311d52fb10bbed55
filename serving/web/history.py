"""Versions of a document as pages show them, with the changes from each to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from parquetry.serving.web.documents import ShownFailure, failure_of

MOST_CHARACTERS = 500_000
"""characters of each text that are compared, from its start"""
_ACCESS = ("visibility", "org_id", "user_id", "tags")


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """A version of a document."""

    number: int
    """1-based, the oldest first"""
    revision: int
    """of its text; 0 for none"""
    at: datetime | None
    changes: tuple[str, ...]
    """the changes since the version before, in words"""
    size: int
    """bytes"""
    chunks: int
    status: str
    failure: ShownFailure | None


def shown_versions(rows: Sequence[Mapping[str, Any]]) -> list[ShownVersion]:
    """Return versions with the changes in each.

    Args:
        rows: rows of the document, newest first.
    """
    found = []
    for place, (row, before) in enumerate(zip_longest(rows, rows[1:])):
        failed = row["status"] != "indexed" and not row["removed"]
        found.append(
            ShownVersion(
                len(rows) - place,
                0 if row["removed"] else row["revision"],
                row["indexed_at"],
                tuple(_changes(row, before)),
                row["size"] or 0,
                0 if row["removed"] else row["chunks"] or 0,
                "removed" if row["removed"] else row["status"],
                failure_of(row["error"]) if failed else None,
            )
        )
    return found


def _changes(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    if row["removed"]:
        return ["Removed"]
    if before is None:
        return ["Added"]
    if before["removed"]:
        return ["Brought back" if row["revision"] == before["revision"] else "Added again"]
    if row["status"] != "indexed":
        return ["Could not be read" if row["status"] == "failed" else "Skipped"]
    told = []
    if row["content_hash"] != before["content_hash"]:
        told.append("Content")
    elif row["revision"] != before["revision"]:
        told.append("Read again")
    if row["path"] != before["path"]:
        told.append("Name")
    if any(row[name] != before[name] for name in _ACCESS):
        told.append("Permissions and tags")
    if row["metadata"] != before["metadata"] or row["title"] != before["title"]:
        told.append("Metadata")
    return told or ["Published again"]


@dataclass(frozen=True, slots=True)
class ComparedVersions:
    """The two versions to compare."""

    old: ShownVersion
    new: ShownVersion


def comparison_of(versions: Sequence[ShownVersion], old: int | None, new: int | None) -> ComparedVersions | None:
    """Return the versions to compare: those asked for by number, else the newest two with different texts."""
    by_number = {each.number: each for each in versions}
    if old is not None and new is not None:
        one, other = by_number.get(old), by_number.get(new)
        return None if one is None or other is None else ComparedVersions(one, other)
    texts = [each for each in versions if each.revision]
    newest = texts[0] if texts else None
    before = next((each for each in texts if newest and each.revision != newest.revision), None)
    return None if newest is None or before is None else ComparedVersions(before, newest)
