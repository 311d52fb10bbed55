"""Host throttling: intervals between requests, and back-off at a host's request."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from parquetry.errors import TransientError
from parquetry.net.rate_limiter import RATE_LIMITER, RateLimiter, host_of

LONGEST_WAIT_SECONDS = 60.0
"""seconds; a longer back-off is left to a later retry"""
_DAY_SECONDS = 86_400.0


class HostThrottle:
    """Throttles requests to hosts; one instance for the whole process, shared by all sources.

    Args:
        turns: rate limiter of the process.
    """

    def __init__(self, turns: RateLimiter = RATE_LIMITER) -> None:
        self._turns = turns
        self._lock = Lock()
        self._rests_until: dict[str, float] = {}

    def wait(self, url: str, interval: float, pause: Callable[[float], None]) -> None:
        """Wait for the next turn at a host.

        Args:
            url: any URL of the host.
            interval: seconds between requests.
            pause: function that waits for a number of seconds.

        Raises:
            TransientError: see `wait_out_rest`.
        """
        self.wait_out_rest(url, pause)
        pause(self._turns.reserve(host_of(url), 1 / interval))

    def wait_out_rest(self, url: str, pause: Callable[[float], None]) -> None:
        """Wait until the end of a back-off that a host asked for.

        Raises:
            TransientError: `rate-limited`, the back-off exceeds the longest wait.
        """
        host = host_of(url)
        with self._lock:
            rest = self._rests_until.get(host, 0.0) - time.monotonic()
        if rest > LONGEST_WAIT_SECONDS:
            raise TransientError("rate-limited", f"{host} asked not to be asked for {rest:.0f} s", rest)
        pause(max(0.0, rest))

    def rest(self, url: str, seconds: float) -> None:
        """Back off from a host for a number of seconds, at most a day."""
        host = host_of(url)
        with self._lock:
            until = time.monotonic() + min(seconds, _DAY_SECONDS)
            self._rests_until[host] = max(self._rests_until.get(host, 0.0), until)


HOST_THROTTLE = HostThrottle()
"""instance of this process"""
