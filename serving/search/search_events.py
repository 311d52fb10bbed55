"""Search events for monitoring: a JSON line in a file, a row of the table `searches`."""

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
"""maximum number of events in one commit to the table `searches`"""


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """One answered search. Does not identify the caller, only records if there was one."""

    searched_at: datetime
    """time of the answer, UTC"""
    query: str
    mode: str
    level: str
    k: int
    caller: bool
    """True if the search was limited to what a user or an organization may see"""
    version: int
    """version of the corpus"""
    count: int
    """number of results"""
    mean_score: float | None
    """mean score of the results; None without any"""
    best_score: float | None
    seconds: float
    cached: bool

    def as_row(self) -> dict[str, Any]:
        """Return the values by column, for a table."""
        return {name: getattr(self, name) for name in self.__slots__}

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {
            **self.as_row(),
            "searched_at": self.searched_at.isoformat(),
            "mean_score": _rounded(self.mean_score),
            "best_score": _rounded(self.best_score),
            "seconds": _rounded(self.seconds),
        }


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def mean(scores: Sequence[float]) -> float | None:
    """Return the mean of scores; None if there are none."""
    return sum(scores) / len(scores) if scores else None


class SearchLog:
    """JSON-lines log of searches. Safe to use from several threads and processes.

    A logging failure never fails the search: the first one is reported on stderr, later ones are not.

    Args:
        file: JSON-lines file; created with its folder if missing.
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
            # Opened for every event, so that the file can be rotated; one write is one line across processes, too.
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
    """Recorder of searches in the corpus's table `searches`, many in one commit. Thread-safe.

    Args:
        lake: the corpus.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._lock = threading.Lock()
        self._kept: list[SearchEvent] = []
        self._told = False

    def write(self, event: SearchEvent) -> None:
        """Buffer one event; a full buffer is written."""
        with self._lock:
            self._kept.append(event)
            full = len(self._kept) >= RECORDED_TOGETHER
        if full:
            self.flush()

    def flush(self) -> None:
        """Write the buffer. A failure never fails the search: it is reported once on stderr."""
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
