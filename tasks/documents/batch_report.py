"""Reports of batches of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from parquetry.model import DocumentRow, Note
from parquetry.planning.costs import Cost
from parquetry.planning.outage import Key, Lost
from parquetry.planning.report import Work
from parquetry.storage.lake.shards import Shard


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The result of a batch: rows to publish and shards to register; nothing is visible yet."""

    batch: int
    rows: tuple[DocumentRow, ...]
    shards: tuple[Shard, ...]
    work: Work
    notes: tuple[Note, ...]
    """problems that were worked around in documents that are indexed nevertheless"""
    seconds: dict[str, float]
    """seconds by stage, including waiting"""
    lost: Mapping[Key, Lost] = field(default_factory=dict)
    """documents not processed because a service failed"""
    held: frozenset[Key] = frozenset()
    """documents left unchanged because the budget is reached"""
    costs: tuple[Cost, ...] = ()
    """costs by source and purpose"""
    awaited: frozenset[Key] = frozenset()
    """documents left unchanged because vectors of theirs are on their way"""


def held_of(reports: Iterable[BatchReport], rows: Iterable[DocumentRow]) -> frozenset[Key]:
    """Return the documents that the budget held back, and that no later batch has processed or sent to a batch API.

    Args:
        reports: reports of a run.
        rows: its rows.
    """
    held: set[Key] = set()
    for report in reports:
        held = (held - report.awaited) | report.held
    return frozenset(held.difference((row.namespace, row.document_id) for row in rows) if held else held)


def awaited_of(reports: Sequence[BatchReport]) -> frozenset[Key]:
    """Return the documents that wait for batches."""
    return frozenset(key for report in reports for key in report.awaited)
