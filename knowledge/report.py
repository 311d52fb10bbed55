"""What a run reports: counts that add up, and every document that was not indexed with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from knowledge.changes import Change, SourcePlan
from knowledge.model import DocumentRow, Failure


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """Documents by what became of them. `scanned` is the sum of the others but `removed`."""

    scanned: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    permissions: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: int = 0
    skipped: int = 0

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Work:
    """What processing took."""

    chunks_written: int = 0
    chunks_embedded: int = 0
    chunks_reused: int = 0
    bytes_read: int = 0
    tokens: int = 0
    """sent to the embedder"""
    description_tokens: int = 0
    """read and written by the language model that described images"""
    cost_usd: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of one refresh."""

    run_id: str
    version: int
    """of `documents`, after the run"""
    version_before: int
    seconds: float
    documents: DocumentCounts
    work: Work
    failures: tuple[Failure, ...]
    """every document of the refreshed sources that is not indexed as it should be, tried in this run or before; and
    every source whose listing broke off"""
    warnings: tuple[str, ...]
    """what was worked around, with the document's uri"""
    refused: tuple[str, ...] = ()
    """sources that a guard held back"""
    seconds_by_stage: dict[str, float] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    """sources in which nothing was found, one line each"""
    retries: int = 0
    """tries after the first, of listings, fetches and batches"""

    def as_json(self) -> dict[str, Any]:
        """The object that `parquetry refresh --json` prints."""
        return {
            "run_id": self.run_id,
            "version": self.version,
            "seconds": round(self.seconds, 3),
            "documents": self.documents.as_dict(),
            "chunks": {
                "written": self.work.chunks_written,
                "embedded": self.work.chunks_embedded,
                "reused": self.work.chunks_reused,
            },
            "bytes_read": self.work.bytes_read,
            "tokens": self.work.tokens,
            "description_tokens": self.work.description_tokens,
            "cost_usd": round(self.work.cost_usd, 6),
            "failures": [
                {
                    "uri": failure.uri,
                    "status": failure.status,
                    "stage": failure.stage,
                    "reason": failure.reason,
                    "detail": failure.detail,
                }
                for failure in self.failures
            ],
            "warnings": [*self.empty, *self.warnings],
            "refused": list(self.refused),
            "retries": self.retries,
        }


def count_documents(plans: Sequence[SourcePlan], written: Iterable[DocumentRow] | None = None) -> DocumentCounts:
    """Count every listed document once.

    A document that ended up failed or skipped counts as that, whatever had been planned for it, and goes on counting
    as that in every run until it is repaired.

    Args:
        plans: of the sources that were refreshed; a refused source counts as unchanged.
        written: the rows that the run published, None to count a plan. What was planned and is not among them was
            published by another run first: no change of this one.
    """
    published = None if written is None else {(row.namespace, row.document_id): row for row in written}
    counts: Counter[str] = Counter()
    for plan in plans:
        counts.update(scanned=plan.settled, unchanged=plan.settled)
        for change in plan.changes:
            key = (change.namespace, change.document_id)
            row = published.get(key) if published is not None else None
            held = plan.refused is not None or (published is not None and row is None)
            if change.action == "removed":
                counts["removed"] += not held
                continue
            counts["scanned"] += 1
            counts[_outcome(change, row, held=held)] += 1
    return DocumentCounts(**counts)


def _outcome(change: Change, row: DocumentRow | None, *, held: bool) -> str:
    latest = row or change.known
    if latest is not None and latest.status != "indexed" and (row is not None or held or change.effort != "extract"):
        return latest.status
    return "unchanged" if held else change.action


def failures_by_reason(failures: Iterable[Failure]) -> dict[str, int]:
    """`stage/reason` -> count, the most frequent first."""
    return dict(Counter(f"{failure.stage}/{failure.reason}" for failure in failures).most_common())
