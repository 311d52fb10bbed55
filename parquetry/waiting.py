"""Notes of what a program waits for, and a thread that tells of it from time to time."""

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
    """Something that is being waited for."""

    ticket: object
    """what it was begun with"""
    subject: str
    seconds: float
    """so far"""


class Waits:
    """Notes what is being waited for. Used from all threads of a run.

    Args:
        now: a clock in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._begun: dict[object, tuple[float, str]] = {}
        """by ticket, in the order in which they began"""

    def begin(self, ticket: object, subject: str) -> None:
        """Note that something is being waited for, unless that is known."""
        with self._lock:
            self._begun.setdefault(ticket, (self._now(), subject))

    def end(self, ticket: object) -> None:
        """Note that it is there, or given up; nothing if it never began."""
        with self._lock:
            self._begun.pop(ticket, None)

    @contextmanager
    def on(self, subject: str) -> Iterator[None]:
        """Wait for something in the block."""
        ticket = object()
        self.begin(ticket, subject)
        try:
            yield
        finally:
            self.end(ticket)

    @property
    def all(self) -> tuple[Wait, ...]:
        """What is being waited for now, what has taken longest first."""
        with self._lock:
            now = self._now()
            return tuple(Wait(ticket, subject, now - since) for ticket, (since, subject) in self._begun.items())


class Teller(Generic[News]):
    """Looks from time to time whether there is news, and tells it, in a thread of its own.

    Use as a context manager: nothing is told once it is left.

    Args:
        look: the news since the last look.
        tell: is given each piece.
        seconds: between two looks.
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
