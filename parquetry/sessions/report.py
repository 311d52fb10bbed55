"""What a run over chat sessions reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parquetry.model import Failure
from parquetry.planning.report import tell_masked
from parquetry.sessions.model import Decision, DecisionKind

SESSION_COUNTS = ("scanned", "new", "grown", "retried", "unchanged", "failed")
"""retried: nothing is new, and what was quarantined is read again"""
KINDS: tuple[DecisionKind, ...] = ("new", "existing", "merged", "contradicts", "refused", "quarantined")
"""of decisions that a run makes"""


@dataclass(frozen=True, slots=True)
class SessionsReport:
    """The report of one run."""

    run_id: str
    version: int
    """of `documents`, after the run"""
    version_before: int
    seconds: float
    sessions: Mapping[str, int]
    """by name: SESSION_COUNTS; the first is the sum of the others"""
    entries: Mapping[str, int]
    """decisions by kind"""
    calls: int
    """to the language model"""
    cached: int
    """questions to it whose answer was kept"""
    tokens: int
    """read and written by the language model, in calls of this run"""
    embedding_tokens: int
    cost_usd: float | None
    """US dollars; None if a price is not known"""
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    """what was worked around"""
    decisions: tuple[Decision, ...] = ()
    """in the order in which they were made"""
    outages: tuple[str, ...] = ()
    """sources that a service failed, one line each: the run has failed, although what was good is published"""
    index_error: str | None = None
    """why the search index could not follow what is published, and what to do; None if it did"""
    seconds_by_stage: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tell_masked(self, "warnings", "outages", "index_error")

    @property
    def refusals(self) -> dict[str, int]:
        """Reason -> how many statements were refused, or replies quarantined, for it; the most frequent first."""
        return reasons([each for each in self.decisions if each.kind in ("refused", "quarantined")])

    def as_json(self) -> dict[str, Any]:
        """The object that `parquetry sessions refresh --json` prints."""
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
            "outages": list(self.outages),
            "index_error": self.index_error,
        }


def failure_json(failure: Failure) -> dict[str, str]:
    """A failure as reports and plans tell it."""
    return {name: getattr(failure, name) for name in ("uri", "status", "stage", "reason", "detail")}


def count_decisions(decisions: Iterable[Decision]) -> dict[str, int]:
    """Decisions by kind, each kind named."""
    counts = Counter(decision.kind for decision in decisions)
    return {kind: counts[kind] for kind in KINDS}


def reasons(decisions: Sequence[Decision]) -> dict[str, int]:
    """Reason -> how often something was refused, or kept apart, for it; the most frequent first."""
    return dict(Counter(decision.reason for decision in decisions if decision.reason).most_common())
