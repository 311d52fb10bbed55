"""What brings an earlier state back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from parquetry.model import DocumentRow
from parquetry.planning.rebase import Key
from parquetry.planning.rows import Stamp, removed_row


def restore(target: Mapping[Key, DocumentRow], current: Mapping[Key, DocumentRow], stamp: Stamp) -> list[DocumentRow]:
    """The rows whose publish makes the current state equal to an earlier one.

    Args:
        target: the rows that were current then.
        current: the rows that are current now.
        stamp: of the run that restores.

    Returns:
        The documents that differ as they were then, and a tombstone for each that was not there.
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
    """Whether two rows differ in nothing but which publish wrote them."""
    return replace(one, sequence=other.sequence, run_id=other.run_id, indexed_at=other.indexed_at) == other
