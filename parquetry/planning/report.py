"""Report of a run: consistent counts, and every document that was not indexed, with its reason."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, get_args

from parquetry import ids
from parquetry.errors import IndexNotWritten, OutageError, RefusedError, RunSuspended
from parquetry.llm.spending import Ledger, Usage
from parquetry.masking import masked
from parquetry.model import DocumentRow, Failure, Status
from parquetry.planning.costs import Cost
from parquetry.planning.diff import Change, SourcePlan
from parquetry.planning.kept import KeptDocuments
from parquetry.planning.slowest import SlowItem, rounded_stages
from parquetry.planning.tally import outcome_of, tally_of
from parquetry.plural import counted

_STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """Number of documents by outcome. `scanned` is the sum of all others except `removed`."""

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
    """Amount of work and its cost."""

    chunks_written: int = 0
    chunks_embedded: int = 0
    chunks_reused: int = 0
    bytes_read: int = 0
    tokens: int = 0
    """tokens sent to the embedder"""
    description_tokens: int = 0
    """input and output tokens of the language model that described images"""
    cost_usd: float | None = 0.0
    """US dollars; None if a price is unknown"""

    def __add__(self, other: Work) -> Work:
        costs = (self.cost_usd, other.cost_usd)
        counts = {name: getattr(self, name) + getattr(other, name) for name in self.__slots__ if name != "cost_usd"}
        return Work(**counts, cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs))


RunError = OutageError | RefusedError | IndexNotWritten | RunSuspended
"""error of a run that published, but did not succeed"""


def error_of(
    outages: Sequence[str], refused: Sequence[str], index_error: str | None, suspended: Sequence[str] = ()
) -> RunError | None:
    """Return the error of a run that did not succeed, even if it published; None if it succeeded."""
    if outages:
        return OutageError("; ".join(outages))
    if refused:
        return RefusedError("; ".join(refused))
    if index_error is not None:
        return IndexNotWritten(index_error)
    return RunSuspended("; ".join(suspended)) if suspended else None


class PublishOutcome(Protocol):
    """Published version and index state, part of every run's report."""

    @property
    def version(self) -> int: ...

    @property
    def version_before(self) -> int: ...

    @property
    def index_error(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class RunReport:
    """Report of one refresh."""

    run_id: str
    version: int
    """version of `documents` after the run"""
    version_before: int
    seconds: float
    documents: DocumentCounts
    work: Work
    failures: tuple[Failure, ...]
    """every document of the refreshed sources that is not properly indexed, tried in this run or an earlier one; and
    every source with a listing that broke off"""
    warnings: tuple[str, ...]
    """problems that were worked around, each with the document's uri"""
    refused: tuple[str, ...] = ()
    """sources that a guard refused"""
    seconds_by_stage: Mapping[str, float] = field(default_factory=dict)
    """plan, process, publish and index by the clock; fetch, extract, embed and store are parts of process, summed over
    batches that work side by side"""
    empty: tuple[str, ...] = ()
    """sources in which nothing was found, one line each"""
    outages: tuple[str, ...] = ()
    """sources that a service failed, one line each: the run has failed, although its successful part is published"""
    failed_sources: tuple[str, ...] = ()
    """their names"""
    held_sources: tuple[str, ...] = ()
    """sources of which a guard or the budget held something back"""
    left_out: tuple[str, ...] = ()
    """sources that leave documents to nested sources, one line each"""
    kept: tuple[KeptDocuments, ...] = ()
    """documents that were not removed because their source could not be listed completely"""
    index_error: str | None = None
    """reason why the search index was not updated, and the remedy; None if it was"""
    retries: int = 0
    """retries of listings, fetches and batches"""
    costs: tuple[Cost, ...] = ()
    """costs by source and purpose"""
    estimated_usd: float | None = None
    """likely cost by the plan; None if a price is unknown"""
    suspended: tuple[str, ...] = ()
    """lines on documents that wait for batches at a service"""
    batches: tuple[str, ...] = ()
    """batches that were sent and received, a line each"""
    batch_problems: tuple[str, ...] = ()
    """batches that could not be sent or asked about, a line each"""
    slowest: tuple[SlowItem, ...] = ()
    """documents or sessions that took longest, slowest first"""

    def __post_init__(self) -> None:
        tell_masked(self, "warnings", "refused", "empty", "outages", "left_out", "index_error")
        tell_masked(self, "suspended", "batches", "batch_problems")

    @property
    def problems(self) -> tuple[str, ...]:
        """Sources for which the run did not succeed, one line each."""
        return (*self.outages, *self.batch_problems, *self.refused, *self.suspended)

    @property
    def error(self) -> RunError | None:
        """Error of a run that did not succeed, even if it published; None if it succeeded."""
        failed = (*self.outages, *self.batch_problems)
        return error_of(failed, self.refused, self.index_error, self.suspended)

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry refresh --json` prints."""
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
            "outages": [*self.outages, *self.batch_problems],
            "suspended": list(self.suspended),
            "batches": list(self.batches),
            "kept": [kept.as_json() for kept in self.kept],
            "index_error": self.index_error,
            "seconds_by_stage": rounded_stages(self.seconds_by_stage),
            "slowest": [item.as_json() for item in self.slowest],
        }


def tell_masked(report: Any, *names: str) -> None:
    """Mask secrets in fields of a new report; each field is a line, several lines or None."""
    for name in names:
        said = getattr(report, name)
        shown = tuple(map(masked, said)) if isinstance(said, tuple) else said and masked(said)
        object.__setattr__(report, name, shown)


def published_line(root: str, report: PublishOutcome) -> str:
    """Format the line on a corpus's version after a run, and on its search index if that was not updated."""
    changed = "published" if report.version != report.version_before else "unchanged at"
    index = "" if report.index_error is None else f", but its search index is not written: {report.index_error}"
    return f"Corpus {root}: {changed} version {report.version}{index}."


def count_documents(plans: Sequence[SourcePlan], written: Iterable[DocumentRow] | None = None) -> DocumentCounts:
    """Count every listed document once.

    A document that ended up failed or skipped counts as such, whatever was planned for it, and keeps doing so in every
    run until it is repaired.

    Args:
        plans: plans of the refreshed sources; a refused source counts as unchanged.
        written: rows that the run published, None to count a plan. A planned document without a row here was published
            by another run first and is not a change of this one.
    """
    published = None if written is None else _Outcomes(written)
    counts: Counter[str] = Counter()
    for plan in plans:
        counts.update(scanned=plan.unchanged, unchanged=plan.unchanged)
        counts.update(_planned(plan) if published is None else _became(plan, published))
    return DocumentCounts(**counts)


def _planned(plan: SourcePlan) -> Counter[str]:
    """Count what is to become of the documents of a plan."""
    if plan.refused is None:
        counts = tally_of(plan.changes).outcomes.copy()
    else:
        counts = Counter(outcome_of(each, None, held=True) for each in plan.changes if each.action != "removed")
    counts["scanned"] = counts.total() - counts["removed"]
    counts["removed"] += len(plan.handed_over)
    return counts


def _became(plan: SourcePlan, published: _Outcomes) -> Counter[str]:
    """Count what became of the documents of a plan."""
    counts: Counter[str] = Counter()
    for change in plan.changes:
        status = published.status(change)
        held = plan.refused is not None or status is None
        if change.action == "removed":
            counts["removed"] += not held
            continue
        counts["scanned"] += 1
        counts[outcome_of(change, status, held=held)] += 1
    counts["removed"] += sum(published.status(change) is not None for change in plan.handed_over)
    return counts


class _Outcomes:
    """Status of each written document, in 9 bytes of memory each, by a digest of 64 bits."""

    def __init__(self, written: Iterable[DocumentRow]) -> None:
        keys, statuses = array("Q"), bytearray()
        for row in written:
            keys.append(_key(row.namespace, row.document_id))
            statuses.append(_STATUSES.index(row.status))
        # Commands that run nothing do without it.
        import numpy as np

        digests = np.array(keys, np.uint64)
        order = np.argsort(digests, kind="stable")
        self._keys = digests[order].data
        self._statuses = bytes(np.array(statuses, np.uint8)[order])

    def status(self, change: Change) -> Status | None:
        """Return the last status written for a document; None for a document of which no row was written."""
        key = _key(change.namespace, change.document_id)
        place = bisect_right(self._keys, key) - 1
        return _STATUSES[self._statuses[place]] if place >= 0 and self._keys[place] == key else None


def _key(namespace: str, document_id: str) -> int:
    return int.from_bytes(ids.digest(namespace, document_id, size=8), "little")


def failures_by_reason(failures: Iterable[Failure]) -> dict[str, int]:
    """Return `stage/reason` -> count, the most frequent first."""
    return dict(Counter(f"{failure.stage}/{failure.reason}" for failure in failures).most_common())


def with_all_paid(work: Work, ledger: Ledger) -> Work:
    """Return the work with the cost of failed batches included."""
    embedded = ledger.usage.get("embed", Usage())
    cost = None if work.cost_usd is None else max(work.cost_usd, ledger.cost_usd)
    return replace(work, tokens=max(work.tokens, embedded.input_tokens), cost_usd=cost)


def held_back(documents: int, ledger: Ledger) -> str:
    """Format the line on documents that the budget held back."""
    waiting = f"{counted(documents, 'document')} stay as before"
    lost = f", up to {dollars(ledger.written_off_usd)} more by lost workers" if ledger.written_off_usd else ""
    return (
        f"the budget of ${ledger.budget_usd or 0:g} ({ledger.key}) is reached, {dollars(ledger.cost_usd)} spent{lost}: "
        f"{waiting}. What was paid for is kept; raise the budget and run again"
    )


def written_off(ledger: Ledger) -> tuple[str, ...]:
    """Format the warning about what workers may have spent whose reports never came, if there is any."""
    if not ledger.written_off_usd:
        return ()
    return (
        f"workers were lost at work: up to {dollars(ledger.written_off_usd)} that they may have spent is in no report, "
        "and counts as spent in the budget of this run",
    )


def dollars(cost_usd: float | None) -> str:
    """Format US dollars for display; `unknown` for None."""
    return "unknown" if cost_usd is None else f"${cost_usd:.4f}"
