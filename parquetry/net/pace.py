"""How fast hosts are asked, and how long they are left alone when they ask for that."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from parquetry.errors import TransientError
from parquetry.net.rate import TURNS, Turns, host_of

LONGEST_WAIT_SECONDS = 60.0
"""who wants to be left alone for longer is asked by a later try"""
_DAY_SECONDS = 86_400.0


class Pace:
    """Waits for the turn at a host; one for the whole process, whichever sources ask.

    Args:
        turns: of all who ask anything in this process.
    """

    def __init__(self, turns: Turns = TURNS) -> None:
        self._turns = turns
        self._lock = Lock()
        self._rests_until: dict[str, float] = {}

    def wait(self, url: str, interval: float, pause: Callable[[float], None]) -> None:
        """Wait for the next turn at a host.

        Args:
            url: of the host.
            interval: seconds from one request to the next.
            pause: waits that many seconds.

        Raises:
            TransientError: as `wait_out_rest`.
        """
        self.wait_out_rest(url, pause)
        pause(self._turns.reserve(host_of(url), 1 / interval))

    def wait_out_rest(self, url: str, pause: Callable[[float], None]) -> None:
        """Wait until a host may be asked again that asked to be left alone.

        Raises:
            TransientError: `rate-limited`, it asked for longer than one can wait.
        """
        host = host_of(url)
        with self._lock:
            rest = self._rests_until.get(host, 0.0) - time.monotonic()
        if rest > LONGEST_WAIT_SECONDS:
            raise TransientError("rate-limited", f"{host} asked not to be asked for {rest:.0f} s", rest)
        pause(max(0.0, rest))

    def rest(self, url: str, seconds: float) -> None:
        """Leave a host alone for a while."""
        host = host_of(url)
        with self._lock:
            until = time.monotonic() + min(seconds, _DAY_SECONDS)
            self._rests_until[host] = max(self._rests_until.get(host, 0.0), until)


PACE = Pace()
"""of this process"""
