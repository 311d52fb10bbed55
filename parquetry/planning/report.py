"""What a run reports: counts that add up, and every document that was not indexed with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from parquetry.errors import IndexNotWritten, OutageError, RefusedError
from parquetry.llm.spending import Ledger, Usage
from parquetry.masking import masked
from parquetry.model import DocumentRow, Failure
from parquetry.planning.diff import Change, SourcePlan
from parquetry.planning.kept import Kept
from parquetry.plural import counted


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
    cost_usd: float | None = 0.0
    """US dollars; None if a price is not known"""

    def __add__(self, other: Work) -> Work:
        costs = (self.cost_usd, other.cost_usd)
        counts = {name: getattr(self, name) + getattr(other, name) for name in self.__slots__ if name != "cost_usd"}
        return Work(**counts, cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs))


class Published(Protocol):
    """What the report of any run says of the version that it left."""

    @property
    def version(self) -> int: ...

    @property
    def version_before(self) -> int: ...

    @property
    def index_error(self) -> str | None: ...


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
    outages: tuple[str, ...] = ()
    """sources that a service failed, one line each: the run has failed, although what was good is published"""
    left_out: tuple[str, ...] = ()
    """sources that leave documents to sources inside them, one line each"""
    kept: tuple[Kept, ...] = ()
    """documents that were not removed because not all of their source could be seen"""
    index_error: str | None = None
    """why the search index could not follow what is published, and what to do; None if it did"""
    retries: int = 0
    """tries after the first, of listings, fetches and batches"""

    def __post_init__(self) -> None:
        tell_masked(self, "warnings", "refused", "empty", "outages", "left_out", "index_error")

    @property
    def error(self) -> OutageError | RefusedError | IndexNotWritten | None:
        """Why the run did not end well, whatever it has published; None if it did."""
        if self.outages:
            return OutageError("; ".join(self.outages))
        if self.refused:
            return RefusedError("; ".join(self.refused))
        return IndexNotWritten(self.index_error) if self.index_error is not None else None

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
            "cost_usd": None if self.work.cost_usd is None else round(self.work.cost_usd, 6),
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
            "warnings": [*self.empty, *self.left_out, *self.warnings],
            "refused": list(self.refused),
            "retries": self.retries,
            "outages": list(self.outages),
            "kept": [kept.as_json() for kept in self.kept],
            "index_error": self.index_error,
        }


def tell_masked(report: Any, *names: str) -> None:
    """Take the secrets out of fields of a new report, each a line, several lines or None."""
    for name in names:
        said = getattr(report, name)
        shown = tuple(map(masked, said)) if isinstance(said, tuple) else said and masked(said)
        object.__setattr__(report, name, shown)


def published_line(root: str, report: Published) -> str:
    """The line that says which version of a corpus there is after a run, and whether its search index followed."""
    changed = "published" if report.version != report.version_before else "unchanged at"
    index = "" if report.index_error is None else f", but its search index is not written: {report.index_error}"
    return f"Corpus {root}: {changed} version {report.version}{index}."


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
        keys = [(change.namespace, change.document_id) for change in plan.handed_over]
        counts["removed"] += sum(published is None or key in published for key in keys)
    return DocumentCounts(**counts)


def _outcome(change: Change, row: DocumentRow | None, *, held: bool) -> str:
    latest = row or change.known
    if latest is not None and latest.status != "indexed" and (row is not None or held or change.effort != "extract"):
        return latest.status
    return "unchanged" if held else change.action


def failures_by_reason(failures: Iterable[Failure]) -> dict[str, int]:
    """`stage/reason` -> count, the most frequent first."""
    return dict(Counter(f"{failure.stage}/{failure.reason}" for failure in failures).most_common())


def with_all_paid(work: Work, ledger: Ledger) -> Work:
    """What was worked, with what was paid for batches that failed afterwards."""
    embedded = ledger.usage.get("embed", Usage())
    cost = None if work.cost_usd is None else max(work.cost_usd, ledger.cost_usd)
    return replace(work, tokens=max(work.tokens, embedded.input_tokens), cost_usd=cost)


def held_back(documents: int, ledger: Ledger) -> str:
    """The line about documents that the budget left as they were."""
    waiting = f"{counted(documents, 'document')} stay as before"
    return (
        f"the budget of ${ledger.budget_usd or 0:g} ({ledger.key}) is reached, {dollars(ledger.cost_usd)} spent: "
        f"{waiting}. What was paid for is kept; raise the budget and run again"
    )


def dollars(cost_usd: float | None) -> str:
    """An amount of US dollars as people read it; one that is not known is said to be unknown."""
    return "unknown" if cost_usd is None else f"${cost_usd:.4f}"
