"""The outcome of a run, successful or not, as metrics need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parquetry.planning.costs import Cost

SourceKey = tuple[str, str]
"""namespace and name of a source"""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A run that ended."""

    corpus: str
    """place of the corpus, without secrets"""
    kind: str
    status: str
    """completed, suspended, refused, failed or unindexed"""
    ended_at: datetime
    """UTC"""
    seconds: float
    sources: Set[SourceKey]
    """sources of the run"""
    fresh: Set[SourceKey]
    """sources of which everything was listed, and nothing was held back"""
    seconds_by_stage: Mapping[str, float]
    counts: Mapping[str, int] = field(default_factory=dict)
    """documents or sessions by outcome; empty for a run that published nothing"""
    not_indexed: Mapping[tuple[str, str, str], int] | None = None
    """(namespace, source, failed or skipped) -> documents; None for a run that published nothing"""
    costs: Sequence[Cost] = ()
    version: int | None = None
    """version of the corpus after the run; None if it is not known"""

    @property
    def is_success(self) -> bool:
        """True if there is nothing to look after; a suspended run goes on by itself."""
        return self.status in ("completed", "suspended")
