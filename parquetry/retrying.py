"""Retries of a call after failures that may pass: the one mechanism, for model services and for sources."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from parquetry.errors import TransientError

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between tries; the other side may ask for others."""

    first: float
    """seconds before the second try; doubled with each further try"""
    longest: float
    """upper bound of the seconds between two tries"""
    longest_asked: float
    """upper bound of the seconds that the other side may ask for"""
    jitter: float
    """share of a wait added at random, so that many callers do not return at once"""

    def seconds(self, tries: int, error: BaseException | None, spread: float) -> float:
        """Return the wait after a failure.

        Args:
            tries: number of tries so far.
            error: the failure.
            spread: 0 to 1.
        """
        asked = asked_wait(error)
        wait = min(self.first * 2 ** (tries - 1), self.longest) if asked is None else min(asked, self.longest_asked)
        return wait * (1 + self.jitter * spread)


def asked_wait(error: BaseException | None) -> float | None:
    """Return the seconds that the other side asked to wait; None if it did not."""
    return error.retry_after if isinstance(error, TransientError) else None


def retried(
    call: Callable[[], T],
    backoff: Backoff,
    *,
    worth: Callable[[BaseException], bool],
    is_last: Callable[[int, BaseException], bool],
    sleep: Callable[[float], None] = time.sleep,
    spread: Callable[[], float] = random.random,
    before_wait: Callable[[BaseException], None] = lambda _: None,
) -> T:
    """Return the result of `call`; its last failure is raised unchanged.

    Args:
        call: makes one try.
        backoff: waits between tries.
        worth: returns True for failures worth another try.
        is_last: returns True to give up, after that number of tries and that failure.
        sleep: waits that many seconds, or raises because the run was cancelled.
        spread: 0 to 1, for the jitter.
        before_wait: receives each failure that is followed by another try.
    """
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - raised again by the first of the tries below
        failed = [error]
    # Most calls succeed, and this import takes a twentieth of a second where Tornado is installed.
    import tenacity

    def each_try() -> T:
        if failed:
            raise failed.pop()
        return call()

    def failure(state: RetryCallState) -> BaseException | None:
        return state.outcome.exception() if state.outcome else None

    def stop(state: RetryCallState) -> bool:
        error = failure(state)
        return error is not None and is_last(state.attempt_number, error)

    def note(state: RetryCallState) -> None:
        if (error := failure(state)) is not None:
            before_wait(error)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(worth),
        stop=stop,
        wait=lambda state: backoff.seconds(state.attempt_number, failure(state), spread()),
        before_sleep=note,
        sleep=sleep,
        reraise=True,
    )(each_try)
