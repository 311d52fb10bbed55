"""Retries of the calls of a run: conditions, number of attempts, and counts by place."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from parquetry.errors import classify
from parquetry.retrying import Backoff, asked_wait, retried

Result = TypeVar("Result")

FIRST_WAIT = 0.5
"""seconds before the first retry; doubled from retry to retry"""
LONGEST_WAIT = 30.0
"""seconds between two attempts, unless the other side asks for a longer wait"""
LONGEST_ASKED = 120.0
"""seconds; a service that asks for a longer wait is left alone until the next run"""
_JITTER = 0.5
"""random share added to a wait, so that many readers do not return at once"""
BREAKER_THRESHOLD = 20
"""consecutive calls that may fail for good; after that a place gets one attempt for each call until one succeeds"""

_LASTING = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


def may_pass(error: BaseException) -> bool:
    """True if a retry in some run may succeed."""
    return isinstance(error, Exception) and classify(error).fate == "retry"


def may_pass_soon(error: BaseException) -> bool:
    """True if a retry within seconds may succeed."""
    return may_pass(error) and not isinstance(error, _LASTING)


@dataclass(frozen=True, slots=True)
class RetryCount:
    """Number of retries at a place for a reason."""

    place: str
    reason: str
    count: int


class Retries:
    """Retry with growing waits, and count. Safe to use from several threads.

    Args:
        attempts: attempts at one call.
        pause: waits the given number of seconds, or raises because the run was cancelled.
    """

    def __init__(self, attempts: int, pause: Callable[[float], None]) -> None:
        self._attempts = attempts
        self._pause = pause
        self._lock = threading.Lock()
        self._lost: Counter[str] = Counter()
        """place -> consecutive calls that failed for good"""
        self._repeated: Counter[tuple[str, str]] = Counter()
        """(place, reason) -> number of retries"""

    def call(
        self,
        place: str,
        function: Callable[[], Result],
        *,
        attempts: int | None = None,
        worth: Callable[[BaseException], bool] = may_pass_soon,
    ) -> Result:
        """Return the result of `function`, retried while its failure may be temporary.

        Args:
            place: the place called, for the counts: the name of a source.
            function: makes one attempt.
            attempts: number of attempts, if different from the default.
            worth: returns True for errors worth a retry.
        """

        def is_last(tries: int, error: BaseException) -> bool:
            patient = self._lost[place] < BREAKER_THRESHOLD
            return not patient or (asked_wait(error) or 0) > LONGEST_ASKED or tries >= (attempts or self._attempts)

        try:
            result = retried(
                function,
                Backoff(FIRST_WAIT, LONGEST_WAIT, LONGEST_ASKED, _JITTER),
                worth=worth,
                is_last=is_last,
                sleep=self._pause,
                before_wait=lambda error: self.count(place, classify(error).reason),
            )
        except Exception as error:
            if worth(error):
                with self._lock:
                    self._lost[place] += 1
            raise
        if place in self._lost:
            with self._lock:
                self._lost.pop(place, None)
        return result

    def count(self, place: str, reason: str) -> None:
        """Count a retry."""
        with self._lock:
            self._repeated[place, reason] += 1

    def take(self) -> tuple[RetryCount, ...]:
        """Return the counts, and begin anew."""
        with self._lock:
            taken = tuple(RetryCount(*key, count) for key, count in self._repeated.items())
            self._repeated.clear()
            return taken

    def add(self, counts: Iterable[RetryCount]) -> None:
        """Add the retries of another process."""
        with self._lock:
            for each in counts:
                self._repeated[each.place, each.reason] += each.count

    @property
    def total(self) -> int:
        """Number of all retries."""
        with self._lock:
            return self._repeated.total()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return one line for each place and reason, the most frequent first."""
        with self._lock:
            repeated = self._repeated.most_common()
        return tuple(
            f"{place}: {count} {'tries were' if count > 1 else 'try was'} repeated ({reason})"
            for (place, reason), count in repeated
        )
