"""Jobs: writes and runs that the service accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

Kind = Literal[
    "ingest", "remove", "clear", "refresh", "reindex", "sessions", "restore", "plan", "undo", "analyze", "reinstate"
]
State = Literal["queued", "running", "completed", "failed", "cancelled"]
KINDS: tuple[Kind, ...] = get_args(Kind)
STATES: tuple[State, ...] = get_args(State)
FINAL: frozenset[State] = frozenset({"completed", "failed", "cancelled"})
WRITES: frozenset[Kind] = frozenset({"ingest", "remove", "clear", "reinstate"})
"""small writes, which do not wait for a run over whole sources"""
ASIDE: frozenset[Kind] = frozenset({"plan", "undo"})
"""jobs that need no run over whole sources to end before them: they publish nothing, or one decision"""
RUNS: frozenset[Kind] = frozenset(KINDS) - WRITES - ASIDE
TOGETHER: frozenset[Kind] = frozenset({"ingest", "remove"})
"""kinds of jobs that are carried out in one run"""


@dataclass(frozen=True, slots=True)
class Job:
    """A write or run that the service accepted, and what became of it."""

    id: str
    """`job-` and 24 hex digits, not guessable"""
    kind: Kind
    namespace: str | None
    """namespace of the corpus; None for all"""
    state: State
    payload: Mapping[str, Any]
    """the work to be done; the form depends on the kind"""
    owner: Mapping[str, str | None]
    """the caller: `user_id`, `org_id` and `token_id`"""
    result: Mapping[str, Any] | None
    """the outcome; None before the end, and for a job that failed before anything was published"""
    reason: str | None
    """code of the failure; None for other states"""
    detail: str | None
    """one sentence on the failure, and what to do"""
    created_at: datetime
    started_at: datetime | None
    """start of the latest attempt; None before the first"""
    finished_at: datetime | None
    progress: Mapping[str, Any] | None
    """counts of a run in progress"""
    attempts: int = 0
    """number of processes that began it"""
    number: int = 0
    """place in the order in which jobs were accepted, whatever the clock said"""

    @property
    def is_final(self) -> bool:
        """True if the state will not change any more."""
        return self.state in FINAL
