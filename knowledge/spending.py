"""What the language model costs: a ledger that every call of a run is written into, and the budget that it keeps."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal

from knowledge.errors import RefusedError

Purpose = Literal["describe", "rerank", "distill", "compare"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls took."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


class Ledger:
    """Counts what calls cost by purpose, and refuses the one that would pass the budget. For several threads.

    Args:
        budget_usd: None for no limit.
    """

    def __init__(self, budget_usd: float | None = None) -> None:
        self.budget_usd = budget_usd
        self._usage: dict[Purpose, Usage] = {}
        self._expected = 0.0
        """US dollars, of the calls that are being made"""
        self._warnings: dict[str, None] = {}
        self._lock = threading.Lock()

    @property
    def usage(self) -> dict[Purpose, Usage]:
        """Of the calls that were made, by what they were made for."""
        with self._lock:
            return dict(self._usage)

    @property
    def cost_usd(self) -> float:
        return sum((used.cost_usd for used in self.usage.values()), 0.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was worked around, a sentence each."""
        with self._lock:
            return tuple(self._warnings)

    def warn(self, sentence: str) -> None:
        """Note what was worked around, once."""
        with self._lock:
            self._warnings[sentence] = None

    def begin(self, expected_usd: float) -> None:
        """Reserve what a call is expected to cost.

        Raises:
            RefusedError: the budget is spent, or this call would pass it.
        """
        with self._lock:
            spent = sum((used.cost_usd for used in self._usage.values()), 0.0)
            budget = self.budget_usd
            if budget is not None and (spent >= budget or spent + self._expected + expected_usd > budget):
                raise RefusedError(
                    f"the budget of {budget:g} US dollars does not allow the next call of the language model "
                    f"({spent:.6f} spent, {self._expected + expected_usd:.6f} expected); raise sessions.budget_usd "
                    "and run again: what was answered is kept"
                )
            self._expected += expected_usd

    def settle(self, purpose: Purpose, expected_usd: float, used: Usage) -> None:
        """Write down what a call took, in place of what was expected of it."""
        with self._lock:
            self._expected = max(0.0, self._expected - expected_usd)
            self._usage[purpose] = self._usage.get(purpose, Usage()) + used
