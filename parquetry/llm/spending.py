"""Cost of services: a ledger of every request of a run, and the budget that it enforces."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from parquetry.errors import BudgetReached
from parquetry.masking import masked

Purpose = Literal["describe", "rerank", "distill", "compare", "embed", "answer"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of calls."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) - getattr(other, name) for name in self.__slots__))


class Ledger:
    """Count the cost of calls by purpose, and refuse a call that would exceed the budget. Thread-safe.

    Args:
        budget_usd: None for no limit.
        key: settings key of the budget.
    """

    def __init__(self, budget_usd: float | None = None, key: str = "sessions.budget_usd") -> None:
        self.budget_usd = budget_usd
        self.key = key
        self._usage: dict[Purpose, Usage] = {}
        self._expected = 0.0
        """US dollars reserved by calls in progress"""
        self._pending = 0
        """number of calls in progress"""
        self._committed = 0.0
        """US dollars reserved for batches that a service answers later, and for allowances of other processes"""
        self._written_off = 0.0
        """US dollars of that whose usage nobody will report"""
        self._least_refused: float | None = None
        self._earlier = 0.0
        """US dollars of the usage that earlier runs had reserved in their budgets"""
        self._warnings: dict[str, None] = {}
        self._cut: Counter[Purpose] = Counter()
        """number of replies that reached their token limit"""
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)

    @property
    def usage(self) -> dict[Purpose, Usage]:
        """Return the usage of finished calls by purpose."""
        with self._lock:
            return dict(self._usage)

    @property
    def cost_usd(self) -> float:
        return sum((used.cost_usd for used in self.usage.values()), 0.0)

    @property
    def free_usd(self) -> float | None:
        """US dollars of the budget that are neither spent nor reserved; None without a budget."""
        with self._lock:
            return self._free()

    @property
    def least_refused_usd(self) -> float | None:
        """Expected cost in US dollars of the cheapest refused call; None if none was refused."""
        with self._lock:
            return self._least_refused

    @property
    def written_off_usd(self) -> float:
        """US dollars reserved for calls whose usage nobody will report; they count as spent in the budget alone."""
        with self._lock:
            return self._written_off

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the recorded workarounds, a sentence each."""
        with self._lock:
            cut = [
                f"{count} of the model's replies to {purpose} reached the limit of tokens (llm.max_reply_tokens)"
                for purpose, count in self._cut.items()
            ]
            return (*self._warnings, *cut)

    def warn(self, sentence: str) -> None:
        """Record a workaround, once."""
        with self._lock:
            self._warnings[masked(sentence)] = None

    def cut(self, purpose: Purpose) -> None:
        """Record that a reply reached its token limit."""
        with self._lock:
            self._cut[purpose] += 1

    def begin(self, expected_usd: float, *, patient: bool = False) -> None:
        """Reserve the expected cost of a call.

        Args:
            expected_usd: US dollars.
            patient: wait for calls in progress, if this call may fit the budget once they cost less than was reserved.

        Raises:
            BudgetReached: the budget is spent, or this call would exceed it.
        """
        with self._settled:
            while (
                patient and self._pending and self._passes(expected_usd) and not self._passes(expected_usd, alone=True)
            ):
                self._settled.wait()
            self._check(expected_usd)
            self._expected += expected_usd
            self._pending += 1

    def commit(self, expected_usd: float) -> None:
        """Reserve the maximum cost of a request that a service answers later, if at all in this run.

        Raises:
            BudgetReached: the budget is spent, or this request could exceed it.
        """
        with self._lock:
            self._check(expected_usd)
            self._committed += expected_usd

    def release(self, expected_usd: float) -> None:
        """Give back what was reserved by `commit`."""
        with self._settled:
            self._committed = max(0.0, self._committed - expected_usd)
            self._settled.notify_all()

    def allot(self, parts: int, least_usd: float = 0.0) -> float:
        """Reserve a part of what is free for another process, to be given back by `release` or `write_off`.

        Args:
            parts: number of equal parts that what is free is divided into.
            least_usd: US dollars below which the part is of no use; more than that is reserved if it is free.

        Returns:
            US dollars; never more than is free.
        """
        with self._lock:
            free = self._free() or 0.0
            part = max(free / parts, min(free, least_usd))
            self._committed += part
            return part

    def write_off(self, reserved_usd: float) -> None:
        """Keep a reservation for good, because what was spent of it is unknown."""
        with self._lock:
            self._written_off += reserved_usd

    def collect(self, purpose: Purpose, used: Usage, *, reserved_earlier: bool) -> None:
        """Record the usage of requests that were answered later.

        Args:
            purpose: what they were for.
            used: their usage.
            reserved_earlier: True if they are in the budget of an earlier run, and not in this one's.
        """
        with self._lock:
            self._note(purpose, used)
            self._earlier += used.cost_usd if reserved_earlier else 0.0

    def _check(self, expected_usd: float) -> None:
        if self._passes(expected_usd):
            refused = self._least_refused
            self._least_refused = expected_usd if refused is None else min(refused, expected_usd)
            raise BudgetReached(
                f"the budget of {self.budget_usd:g} US dollars does not allow the next call of a service "
                f"({self._spent:.6f} spent, {self._expected + self._committed + expected_usd:.6f} expected); raise "
                f"{self.key} and run again: what was paid for is kept"
            )

    @property
    def _spent(self) -> float:
        """US dollars spent of this budget."""
        return sum((used.cost_usd for used in self._usage.values()), 0.0) - self._earlier

    def _free(self) -> float | None:
        if self.budget_usd is None:
            return None
        return max(0.0, self.budget_usd - self._spent - self._expected - self._committed)

    def _passes(self, expected_usd: float, *, alone: bool = False) -> bool:
        """Return True if a call would exceed the budget; `alone` ignores calls in progress."""
        if self.budget_usd is None:
            return False
        spent, others = self._spent, self._committed + (0.0 if alone else self._expected)
        return spent >= self.budget_usd or spent + others + expected_usd > self.budget_usd

    def settle(self, purpose: Purpose, expected_usd: float, used: Usage) -> None:
        """Replace the reserved cost of a call with its usage."""
        with self._lock:
            self._expected = max(0.0, self._expected - expected_usd)
            self._pending -= 1
            self._note(purpose, used)
            self._settled.notify_all()

    def note(self, purpose: Purpose, used: Usage) -> None:
        """Record the usage of a call that has no price."""
        with self._lock:
            self._note(purpose, used)

    def _note(self, purpose: Purpose, used: Usage) -> None:
        self._usage[purpose] = self._usage.get(purpose, Usage()) + used
