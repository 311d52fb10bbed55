"""What may pass is tried again, here and nowhere else: when, how often, and counted."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying

from parquetry.errors import TransientError, classify

Result = TypeVar("Result")

FIRST_WAIT = 0.5
"""seconds before the second try; doubled from try to try"""
LONGEST_WAIT = 30.0
"""seconds between two tries, if the other side asks for nothing else"""
LONGEST_ASKED = 120.0
"""seconds; who asks to be left alone for longer is left alone until the next run"""
_JITTER = 0.5
"""share of a wait that is added at random, so that many readers do not come back at once"""
PATIENCE = 20
"""calls in a row that may go on failing; after that a place gets one try for each call until one succeeds"""

_LASTING = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


def may_pass(error: BaseException) -> bool:
    """Whether something is worth another try in some run."""
    return isinstance(error, Exception) and classify(error).fate == "retry"


def may_pass_soon(error: BaseException) -> bool:
    """Whether something is worth another try within seconds."""
    return may_pass(error) and not isinstance(error, _LASTING)


class Retries:
    """Tries again with growing waits, and counts. Safe to use from several threads.

    Args:
        attempts: tries of one call.
        pause: waits that many seconds, or raises because the run was cancelled.
    """

    def __init__(self, attempts: int, pause: Callable[[float], None]) -> None:
        self._attempts = attempts
        self._pause = pause
        self._lock = threading.Lock()
        self._lost: Counter[str] = Counter()
        """place -> calls in a row that failed for good"""
        self._repeated: Counter[tuple[str, str]] = Counter()
        """(place, reason) -> tries after the first"""

    def call(
        self,
        place: str,
        function: Callable[[], Result],
        *,
        attempts: int | None = None,
        worth: Callable[[BaseException], bool] = may_pass_soon,
    ) -> Result:
        """The result of `function`, tried again while its failure may pass.

        Args:
            place: what is asked, for the count: the name of a source.
            function: one try.
            attempts: tries, if other than of the others.
            worth: which errors are worth another try.
        """

        def stop(state: RetryCallState) -> bool:
            patient = self._lost[place] < PATIENCE
            asked = _asked(state)
            too_long = asked is not None and asked > LONGEST_ASKED
            return not patient or too_long or state.attempt_number >= (attempts or self._attempts)

        def count(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            self.count(place, classify(error).reason if error else "")

        retrying = Retrying(
            retry=lambda state: state.outcome is not None and worth(state.outcome.exception() or StopIteration()),
            stop=stop,
            wait=_wait,
            before_sleep=count,
            sleep=self._pause,
            reraise=True,
        )
        try:
            result = retrying(function)
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
        """Tell of a try after the first."""
        with self._lock:
            self._repeated[place, reason] += 1

    @property
    def total(self) -> int:
        """Tries after the first, of everything."""
        with self._lock:
            return self._repeated.total()

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each place and reason, the most frequent first."""
        with self._lock:
            repeated = self._repeated.most_common()
        return tuple(
            f"{place}: {count} {'tries were' if count > 1 else 'try was'} repeated ({reason})"
            for (place, reason), count in repeated
        )


def _asked(state: RetryCallState) -> float | None:
    """Seconds that the other side asked to wait."""
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after if isinstance(error, TransientError) else None


def _wait(state: RetryCallState) -> float:
    asked = _asked(state)
    seconds = min(FIRST_WAIT * 2 ** (state.attempt_number - 1), LONGEST_WAIT) if asked is None else asked
    return seconds * (1 + _JITTER * random.random())  # noqa: S311 - no secret
