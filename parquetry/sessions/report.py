"""Report of a run over chat sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parquetry.model import Failure
from parquetry.planning.costs import Cost
from parquetry.planning.report import RunError, error_of, tell_masked
from parquetry.planning.slowest import SlowItem, rounded_stages
from parquetry.sessions.model import Decision, DecisionKind

SESSION_COUNTS = ("scanned", "new", "grown", "retried", "unchanged", "failed")
"""counts of sessions; retried: without new messages, but with quarantined ones that are read again"""
KINDS: tuple[DecisionKind, ...] = ("new", "existing", "merged", "contradicts", "refused", "quarantined")
"""kinds of decisions that a run makes"""


@dataclass(frozen=True, slots=True)
class SessionsReport:
    """The report of one run."""

    run_id: str
    version: int
    """version of `documents` after the run"""
    version_before: int
    seconds: float
    sessions: Mapping[str, int]
    """counts by name, SESSION_COUNTS; the first is the sum of the others"""
    entries: Mapping[str, int]
    """decisions by kind"""
    calls: int
    """calls to the language model"""
    cached: int
    """questions answered from the cache"""
    tokens: int
    """tokens read and written by the language model, in calls of this run"""
    embedding_tokens: int
    cost_usd: float | None
    """US dollars; None if a price is unknown"""
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    """workarounds"""
    decisions: tuple[Decision, ...] = ()
    """in the order in which they were made"""
    outages: tuple[str, ...] = ()
    """sources cut off by a service failure, one line each: the run failed, but its good results are published"""
    failed_sources: tuple[str, ...] = ()
    """their names"""
    held_sources: tuple[str, ...] = ()
    """sources of which the budget held something back"""
    index_error: str | None = None
    """reason why the search index could not follow the published state, and the remedy; None if it did"""
    seconds_by_stage: Mapping[str, float] = field(default_factory=dict)
    """plan, process, publish and index by the clock"""
    costs: tuple[Cost, ...] = ()
    """costs by source and purpose"""
    estimated_usd: float | None = None
    """likely cost by the plan; None if a price is unknown"""
    refused: tuple[str, ...] = ()
    """line on sessions that the budget kept from being sent"""
    suspended: tuple[str, ...] = ()
    """lines on sessions that wait for batches at a service"""
    batches: tuple[str, ...] = ()
    """batches that were sent and received, a line each"""
    batch_problems: tuple[str, ...] = ()
    """batches that could not be sent or asked about, a line each"""
    slowest: tuple[SlowItem, ...] = ()
    """documents or sessions that took longest, slowest first"""

    def __post_init__(self) -> None:
        tell_masked(self, "warnings", "outages", "index_error", "refused", "suspended", "batches", "batch_problems")

    @property
    def problems(self) -> tuple[str, ...]:
        """Sources for which the run did not succeed, one line each."""
        return (*self.outages, *self.batch_problems, *self.refused, *self.suspended)

    @property
    def error(self) -> RunError | None:
        """Error of a run that did not succeed, even if it published; None if it succeeded."""
        failed = (*self.outages, *self.batch_problems)
        return error_of(failed, self.refused, self.index_error, self.suspended)

    @property
    def refusals(self) -> dict[str, int]:
        """Count the statements refused and replies quarantined by reason, the most frequent first."""
        return reasons([each for each in self.decisions if each.kind in ("refused", "quarantined")])

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry sessions refresh --json` prints."""
        return {
            "run_id": self.run_id,
            "version": self.version,
            "seconds": round(self.seconds, 3),
            "sessions": dict(self.sessions),
            "entries": dict(self.entries),
            "calls": self.calls,
            "cached": self.cached,
            "tokens": self.tokens,
            "embedding_tokens": self.embedding_tokens,
            "cost_usd": None if self.cost_usd is None else round(self.cost_usd, 6),
            "failures": [failure_json(failure) for failure in self.failures],
            "refusals": self.refusals,
            "warnings": list(self.warnings),
            "outages": [*self.outages, *self.batch_problems],
            "refused": list(self.refused),
            "suspended": list(self.suspended),
            "batches": list(self.batches),
            "index_error": self.index_error,
            "seconds_by_stage": rounded_stages(self.seconds_by_stage),
            "slowest": [item.as_json() for item in self.slowest],
        }


def failure_json(failure: Failure) -> dict[str, str]:
    """Return a failure in the form of reports and plans."""
    return {name: getattr(failure, name) for name in ("uri", "status", "stage", "reason", "detail")}


def count_decisions(decisions: Iterable[Decision]) -> dict[str, int]:
    """Count decisions by kind, with every kind present."""
    counts = Counter(decision.kind for decision in decisions)
    return {kind: counts[kind] for kind in KINDS}


def reasons(decisions: Sequence[Decision]) -> dict[str, int]:
    """Count refusals and entries kept apart by reason, the most frequent first."""
    return dict(Counter(decision.reason for decision in decisions if decision.reason).most_common())
