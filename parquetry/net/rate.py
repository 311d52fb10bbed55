"""How often a service may be asked: turns that everything in this process takes one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit


class Turns:
    """Turns at services, each at least a set time after the one before, whichever source or thread takes it.

    Args:
        now: a clock in seconds that never goes back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._free: dict[str, float] = {}
        """service -> when its next turn begins"""
        self._lock = threading.Lock()

    def reserve(self, host: str, per_second: float) -> float:
        """Take the next turn at a service.

        Args:
            host: of the service, as `host_of` names it.
            per_second: turns that this caller wants to see at most.

        Returns:
            Seconds to wait until the turn begins.
        """
        with self._lock:
            now = self._now()
            begins = max(now, self._free.get(host, now))
            self._free[host] = begins + 1 / per_second
            return begins - now


TURNS = Turns()
"""of this process"""


def host_of(uri: str) -> str:
    """The service or account behind a URL: scheme, host or bucket, and port; never a user or password."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()
