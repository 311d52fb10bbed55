"""Rate limit of a service: calls and tokens per minute, over everything in this process."""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

MINUTE = 60.0
"""seconds"""


@dataclass(slots=True)
class Turn:
    """Permission to make one call."""

    at: float
    """seconds on the quota's clock"""
    tokens: int
    """tokens read and written: first as expected, then as used"""


class ModelRateLimit:
    """Sliding-window limit on the calls and tokens of any sixty seconds. Thread-safe.

    A single call that exceeds the token limit is let through once the window is otherwise empty.

    Args:
        requests_per_minute: None for no limit.
        tokens_per_minute: None for no limit.
        now: monotonic clock in seconds.
        sleep: waits that many seconds of the clock.
    """

    def __init__(
        self,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._requests = int(max(1.0, requests_per_minute)) if requests_per_minute else None
        self._span = MINUTE * self._requests / requests_per_minute if self._requests and requests_per_minute else MINUTE
        """seconds in which that many calls are allowed: more than a minute for less than one call a minute"""
        self._tokens = tokens_per_minute
        self._now, self._sleep = now, sleep
        self._turns: deque[Turn] = deque()
        self._lock = threading.Lock()
        self._queue = threading.Lock()

    def take(self, tokens: int) -> Turn:
        """Wait until a call may be made.

        Args:
            tokens: expected to be read and written.

        Returns:
            The turn; pass it to `correct` with the tokens that the call used.
        """
        with self._queue:  # one waits for the clock, the others wait in line: a large call is not overtaken for ever
            while True:
                with self._lock:
                    now = self._now()
                    wait = self._wait(now, tokens)
                    if wait <= 0:
                        turn = Turn(now, tokens)
                        self._turns.append(turn)
                        return turn
                self._sleep(wait)

    def correct(self, turn: Turn, tokens: int) -> None:
        """Replace the expected tokens of a call with those it used."""
        with self._lock:
            turn.tokens = tokens

    def _wait(self, now: float, tokens: int) -> float:
        """Return the seconds until the next check; 0 if the call may be made now."""
        while self._turns and self._turns[0].at <= now - max(self._span, MINUTE):
            self._turns.popleft()
        wait = 0.0
        if self._requests is not None:
            recent = [turn.at for turn in self._turns if turn.at > now - self._span]
            if len(recent) >= self._requests:
                # Not the oldest call: one that is expired but for rounding lets one call through, not all of them.
                wait = recent[-self._requests] + self._span - now
        if self._tokens is not None:
            left = sum(turn.tokens for turn in self._turns if turn.at > now - MINUTE)
            for turn in self._turns:
                if left + tokens <= self._tokens:
                    break
                if turn.at > now - MINUTE:
                    left -= turn.tokens
                    wait = max(wait, turn.at + MINUTE - now)
        return wait


@functools.cache
def rate_limit_of(
    url: str,  # noqa: ARG001 - part of the key
    model: str,  # noqa: ARG001 - part of the key
    requests_per_minute: float | None,
    tokens_per_minute: float | None,
) -> ModelRateLimit:
    """Return the quota of a model at a service, one per process."""
    return ModelRateLimit(requests_per_minute, tokens_per_minute)
