"""Questions to the language model that are being waited for, so that whoever watches a run sees what it waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from parquetry.plural import counted
from parquetry.waiting import Waits


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run waits for now."""

    answered: int
    """questions so far"""
    asked: int
    """questions that are being waited for"""
    longest: str | None
    """what the one that has been waited for longest is about; None if there is none"""
    seconds: float
    """since that one was asked"""

    def __str__(self) -> str:
        """Say it in a line: `asking about chats/a.json, window 2 of 3, for 41 s; 12 answers so far`."""
        so_far = f"{counted(self.answered, 'answer')} so far"
        if self.longest is None:
            return so_far
        others = f" and {self.asked - 1} more" if self.asked > 1 else ""
        return f"asking about {self.longest}{others}, for {self.seconds:.0f} s; {so_far}"


class Asking:
    """Notes which questions are being waited for. Used from all threads of a run.

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
        """Name what this thread asks about in the block."""
        before = getattr(self._subject, "name", None)
        self._subject.name = subject
        try:
            yield
        finally:
            self._subject.name = before

    @contextmanager
    def question(self, purpose: str) -> Iterator[None]:
        """Wait for an answer in the block.

        Args:
            purpose: of the question; stands for its subject where none is named.
        """
        with self._waits.on(getattr(self._subject, "name", None) or purpose):
            yield
            with self._lock:
                self._answered += 1

    @property
    def state(self) -> Waiting:
        """What is being waited for now."""
        waits = self._waits.all
        if not waits:
            return Waiting(self._answered, 0, None, 0.0)
        return Waiting(self._answered, len(waits), waits[0].subject, waits[0].seconds)
