"""Documents of a run that have been read or are being read, for a visible progress report."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from parquetry.planning.diff import Change
from parquetry.printing import visible
from parquetry.waiting import Wait, Waits

LOOK_SECONDS = 1.0
"""seconds between two checks for slow documents"""
LONG_SECONDS = 30.0
"""seconds after which a document is reported as slow, and again after twice as long, four times as long ..."""


@dataclass(frozen=True, slots=True)
class SlowDocument:
    """A document that is being fetched or extracted, with the time taken so far."""

    path: str
    """path within its source"""
    seconds: float
    """seconds so far"""

    def __str__(self) -> str:
        """Format as one line: `reading handbook.pdf (12 s)`."""
        return f"reading {self.path} ({self.seconds:.0f} s)"

    def line(self, characters: int) -> str:
        """Format for a terminal in at most so many characters, if the end of the path, its most telling part, fits."""
        shown = replace(self, path=visible(self.path))
        over = len(str(shown)) - characters
        if over <= 0:
            return str(shown)
        return str(replace(self, path="…" + shown.path[min(over + 1, len(shown.path) - 1) :]))


class ReadingProgress:
    """Count every document of a run once, even if it is retried. Used from all threads of a run.

    Args:
        now: a clock in seconds.
        waits: fetches in progress, by path.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, waits: Waits | None = None) -> None:
        self.waits = waits or Waits(now)
        self._lock = threading.Lock()
        self._on_read: Callable[[], None] = lambda: None
        self._read: set[int] = set()
        """hashes of namespaces and document ids: two documents that share one count once on a progress bar"""
        self._extracting: dict[Future[Any], str] = {}
        """path of each document passed to the extraction processes, in work or not"""
        self._took: WeakKeyDictionary[Future[Any], float] = WeakKeyDictionary()
        """seconds that the extraction processes worked on a document, as far as they were looked at"""
        self._due: dict[object, float] = {}
        """ticket of a wait -> time in seconds at which it is reported"""

    def on_read(self, callback: Callable[[], None]) -> None:
        """Register a callback that is called for every document from now on, in the thread that reads it."""
        self._on_read = callback

    def extracting(self, change: Change, future: Future[Any], *, is_all: bool) -> None:
        """Follow a document through the extraction processes.

        Args:
            change: change of the document.
            future: extraction of the document.
            is_all: True if the document is completely read after that.
        """

        def done(_: Future[Any]) -> None:
            with self._lock:
                del self._extracting[future]
                self._took[future] = self.waits.end(future)
            if is_all and not future.cancelled():
                self.read(change)

        with self._lock:
            self._extracting[future] = _path(change)
        future.add_done_callback(done)

    def seconds_of(self, future: Future[Any]) -> float:
        """Return the seconds that a followed document was in work, exact to `LOOK_SECONDS`; 0 for a shorter time."""
        with self._lock:
            if future in self._took:
                return self._took[future]
            return next((wait.seconds for wait in self.waits.all if wait.ticket is future), 0.0)

    def read(self, change: Change) -> None:
        """Record that a document is read, or has failed."""
        key = hash((change.namespace, change.document_id))
        with self._lock:
            known = key in self._read
            self._read.add(key)
        if not known:
            # The callback may draw this object's state: no lock is held.
            self._on_read()

    def give_memory_back(self) -> None:
        """Forget which documents were read; after the last batch no document is read again."""
        with self._lock:
            self._read = set()

    @property
    def slowest(self) -> SlowDocument | None:
        """Return the document that has been in reading longest; None if there is none."""
        longest = max(self._waits(), key=lambda wait: wait.seconds, default=None)
        return None if longest is None else _slow(longest)

    def overdue(self) -> list[SlowDocument]:
        """Return documents that became slow, or took twice as long as when last reported, since the last check."""
        waits = self._waits()
        self._due = {wait.ticket: self._due.get(wait.ticket, LONG_SECONDS) for wait in waits}
        found = [wait for wait in waits if wait.seconds >= self._due[wait.ticket]]
        for wait in found:
            self._due[wait.ticket] = 2 * wait.seconds
        return [_slow(wait) for wait in found]

    def _waits(self) -> tuple[Wait, ...]:
        """Documents being read. A document that waits for its turn does not count."""
        with self._lock:
            for future, path in self._extracting.items():
                if future.running():
                    self.waits.begin(future, path)
        return self.waits.all


def _path(change: Change) -> str:
    place = change.item or change.known
    return place.path if place else change.document_id


def _slow(wait: Wait) -> SlowDocument:
    return SlowDocument(wait.subject, wait.seconds)
