"""What is told of each search, for monitoring: a line of JSON in a file, a row of the table `searches`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parquetry.errors import StorageError
from parquetry.printing import json_text, tell
from parquetry.storage.lake.lake import Lake

_DIGITS = 6
RECORDED_TOGETHER = 200
"""events that one commit to the table `searches` holds at most"""


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """One search that was answered. Tells nothing of who asked but whether somebody did."""

    searched_at: datetime
    """UTC, when it was answered"""
    query: str
    mode: str
    level: str
    k: int
    caller: bool
    """whether it was limited to what a user or an organization may see"""
    version: int
    """of the corpus"""
    count: int
    """results"""
    mean_score: float | None
    """of the results; None without any"""
    best_score: float | None
    seconds: float
    cached: bool

    def as_row(self) -> dict[str, Any]:
        """Its values by column, for a table."""
        return {name: getattr(self, name) for name in self.__slots__}

    def as_json(self) -> dict[str, Any]:
        """Its values as JSON can hold them."""
        return {
            **self.as_row(),
            "searched_at": self.searched_at.isoformat(),
            "mean_score": _rounded(self.mean_score),
            "best_score": _rounded(self.best_score),
            "seconds": _rounded(self.seconds),
        }


def now() -> datetime:
    """The time for an event."""
    return datetime.now(UTC)


def mean(scores: Sequence[float]) -> float | None:
    """Of no scores there is none."""
    return sum(scores) / len(scores) if scores else None


class SearchLog:
    """Appends events to a file. Safe to use from several threads and processes.

    A search is never lost because it cannot be logged: the first failure is told on stderr, and later ones are not.

    Args:
        file: of JSON lines; it is made with its folder if it is not there.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file)
        self._lock = threading.Lock()
        self._told = False

    def write(self, event: SearchEvent) -> None:
        """Append one event."""
        line = json_text(event.as_json()) + "\n"
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            # Opened for every event, so that the file can be moved away; one write is one line between processes, too.
            with self._file.open("ab", buffering=0) as file:
                file.write(line.encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        reason = error.strerror or type(error).__name__
        tell(f"parquetry: searches are not logged: {self._file}: {reason}; correct search.log", err=True)


class SearchRecord:
    """Keeps events in the corpus's table `searches`, many in one commit. Safe to use from several threads.

    Args:
        lake: the corpus.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._lock = threading.Lock()
        self._kept: list[SearchEvent] = []
        self._told = False

    def write(self, event: SearchEvent) -> None:
        """Keep one event; those that came together are written when they are many."""
        with self._lock:
            self._kept.append(event)
            full = len(self._kept) >= RECORDED_TOGETHER
        if full:
            self.flush()

    def flush(self) -> None:
        """Write what is kept. A search is never lost because it cannot be recorded: that is told once on stderr."""
        with self._lock:
            kept, self._kept = self._kept, []
            if not kept:
                return
            try:
                self._lake.record_searches([event.as_row() for event in kept])
            except StorageError as error:
                if not self._told:
                    tell(f"parquetry: {error}; turn off search.record_searches where nobody may write", err=True)
                self._told = True


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)
