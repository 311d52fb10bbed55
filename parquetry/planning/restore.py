"""Restore of an earlier state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from parquetry.model import DocumentRow
from parquetry.planning.rebase import Key
from parquetry.planning.rows import RunStamp, removed_row


def restore(
    target: Mapping[Key, DocumentRow], current: Mapping[Key, DocumentRow], stamp: RunStamp
) -> list[DocumentRow]:
    """Return the rows that, once published, make the current state equal to an earlier one.

    Args:
        target: current rows of the earlier state.
        current: rows that are current now.
        stamp: stamp of the restoring run.

    Returns:
        The earlier rows of all documents that differ, and a tombstone for each document that did not exist.
    """
    back = [
        replace(row, run_id=stamp.run_id, indexed_at=stamp.at)
        for key, row in target.items()
        if key not in current or not _same(row, current[key])
    ]
    why = "restore/not-there: not in the version that was restored"
    gone = [removed_row(row, stamp, why) for key, row in current.items() if key not in target]
    return back + gone


def _same(one: DocumentRow, other: DocumentRow) -> bool:
    """Return True if two rows differ only in the publish that wrote them."""
    return replace(one, sequence=other.sequence, run_id=other.run_id, indexed_at=other.indexed_at) == other
