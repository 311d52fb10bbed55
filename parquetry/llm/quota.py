"""How much of a service may be used in a minute: calls and tokens of everything in this process together."""

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
    """A call that may be made."""

    at: float
    """seconds, of the quota's clock"""
    tokens: int
    """read and written: what is expected, then what it was"""


class Quota:
    """Calls and tokens of any sixty seconds, never more than was set. May be used from several threads.

    A single call that is larger than the limit of tokens is let through when nothing else is left of the minute before.

    Args:
        requests_per_minute: None for no limit.
        tokens_per_minute: None for no limit.
        now: a clock in seconds that never goes back.
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
        """seconds in which so many calls may be made: longer than a minute for less than one call a minute"""
        self._tokens = tokens_per_minute
        self._now, self._sleep = now, sleep
        self._turns: deque[Turn] = deque()
        self._lock = threading.Lock()
        self._queue = threading.Lock()

    def take(self, tokens: int) -> Turn:
        """Wait until a call may be made.

        Args:
            tokens: that it is expected to read and write.

        Returns:
            The turn, to be told with `correct` what the call used.
        """
        with self._queue:  # one waits for the clock, the others for it: a large call is not overtaken for ever
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
        """Count what a call really used."""
        with self._lock:
            turn.tokens = tokens

    def _wait(self, now: float, tokens: int) -> float:
        """Seconds until the next look is worth it; 0 if the call may be made now."""
        while self._turns and self._turns[0].at <= now - max(self._span, MINUTE):
            self._turns.popleft()
        wait = 0.0
        if self._requests is not None:
            recent = [turn.at for turn in self._turns if turn.at > now - self._span]
            if len(recent) >= self._requests:
                # Not the oldest: one whose span is over but for a rounding lets one call through, not all of them.
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
def quota_of(
    url: str,  # noqa: ARG001 - part of the key
    model: str,  # noqa: ARG001 - part of the key
    requests_per_minute: float | None,
    tokens_per_minute: float | None,
) -> Quota:
    """The one quota of a model at a service in this process."""
    return Quota(requests_per_minute, tokens_per_minute)
