"""Record of what a program waits for, and a thread that reports it at intervals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

News = TypeVar("News")


@dataclass(frozen=True, slots=True)
class Wait:
    """Operation in progress."""

    ticket: object
    """ticket passed to `begin`"""
    subject: str
    seconds: float
    """seconds since it began"""


class Waits:
    """Record of operations in progress. Thread-safe.

    Args:
        now: a clock in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._begun: dict[object, tuple[float, str]] = {}
        """by ticket, in the order in which they began"""

    def begin(self, ticket: object, subject: str) -> None:
        """Record the beginning of an operation, unless it is already recorded."""
        with self._lock:
            self._begun.setdefault(ticket, (self._now(), subject))

    def end(self, ticket: object) -> float:
        """Record that an operation finished or was abandoned; return the seconds it took, 0 if it never began."""
        with self._lock:
            since, _ = self._begun.pop(ticket, (None, ""))
            return 0.0 if since is None else self._now() - since

    @contextmanager
    def on(self, subject: str) -> Iterator[None]:
        """Record an operation for the duration of the block."""
        ticket = object()
        self.begin(ticket, subject)
        try:
            yield
        finally:
            self.end(ticket)

    @property
    def all(self) -> tuple[Wait, ...]:
        """Return the operations in progress, the longest first."""
        with self._lock:
            now = self._now()
            return tuple(Wait(ticket, subject, now - since) for ticket, (since, subject) in self._begun.items())


class Teller(Generic[News]):
    """Thread that polls for news at an interval, and reports each item.

    Use as a context manager: nothing is reported after the block.

    Args:
        look: returns the news since the last poll.
        tell: receives each item.
        seconds: interval of the polls.
    """

    def __init__(self, look: Callable[[], Iterable[News]], tell: Callable[[News], None], seconds: float) -> None:
        self._look = look
        self._tell = tell
        self._seconds = seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="teller", daemon=True)

    def _go_on(self) -> None:
        while not self._done.wait(self._seconds):
            for news in self._look():
                self._tell(news)

    def __enter__(self) -> Teller[News]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
