"""Questions to the language model that are in flight, for the progress report of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from parquetry.plural import counted
from parquetry.waiting import Waits


@dataclass(frozen=True, slots=True)
class InFlight:
    """The questions in flight at one moment."""

    answered: int
    """number of questions answered so far"""
    asked: int
    """number of questions in flight"""
    longest: str | None
    """subject of the question in flight for longest; None if there is none"""
    seconds: float
    """seconds since that question was asked"""

    def __str__(self) -> str:
        """Format as one line: `asking about chats/a.json, window 2 of 3, for 41 s; 12 answers so far`."""
        so_far = f"{counted(self.answered, 'answer')} so far"
        if self.longest is None:
            return so_far
        others = f" and {self.asked - 1} more" if self.asked > 1 else ""
        return f"asking about {self.longest}{others}, for {self.seconds:.0f} s; {so_far}"


class Asking:
    """Record the questions in flight. Used from all threads of a run.

    Args:
        now: a clock in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._waits = Waits(now)
        self._answered = 0
        self._subject = threading.local()

    @contextmanager
    def about(self, subject: str) -> Iterator[None]:
        """Name the subject of this thread's questions in the block."""
        before = getattr(self._subject, "name", None)
        self._subject.name = subject
        try:
            yield
        finally:
            self._subject.name = before

    @contextmanager
    def question(self, purpose: str) -> Iterator[None]:
        """Mark a question as in flight for the block.

        Args:
            purpose: purpose of the question; shown where no subject is named.
        """
        with self._waits.on(getattr(self._subject, "name", None) or purpose):
            yield
            with self._lock:
                self._answered += 1

    @property
    def state(self) -> InFlight:
        """Return the questions in flight now."""
        waits = self._waits.all
        if not waits:
            return InFlight(self._answered, 0, None, 0.0)
        return InFlight(self._answered, len(waits), waits[0].subject, waits[0].seconds)
