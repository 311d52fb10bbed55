"""Rate limiting of requests to services, shared by everything in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit


class RateLimiter:
    """Rate limiter: hands out turns at services with a minimum interval, across all sources and threads.

    Args:
        now: monotonic clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._free: dict[str, float] = {}
        """service -> start of its next turn"""
        self._lock = threading.Lock()

    def reserve(self, host: str, per_second: float) -> float:
        """Reserve the next turn at a service.

        Args:
            host: service, as named by `host_of`.
            per_second: maximum turns per second for this caller.

        Returns:
            Seconds to wait until the turn begins.
        """
        with self._lock:
            now = self._now()
            begins = max(now, self._free.get(host, now))
            self._free[host] = begins + 1 / per_second
            return begins - now


RATE_LIMITER = RateLimiter()
"""instance of this process"""


def host_of(uri: str) -> str:
    """Return the service or account behind a URL: scheme, host or bucket, and port; never a user or password."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()
