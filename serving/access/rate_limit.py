"""Rate limits: a token bucket per token, in the memory of each worker."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from pyrate_limiter import Duration, InMemoryStateStore, Rate, TokenBucket

from parquetry.serving.access.refusals import RateLimited

MOST_KEYS = 10_000
"""maximum number of buckets; the least recently used one is dropped, and begins full again"""


class RequestLimiter:
    """Token buckets that hold the requests of one minute each. Thread-safe.

    Args:
        per_minute: requests per minute and key; as many may come at once.
        now: monotonic clock, in seconds.
    """

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._rates = [Rate(per_minute, Duration.MINUTE)]
        self._bucket = TokenBucket()
        self._now = now
        self._lock = threading.Lock()
        self._states: OrderedDict[str, InMemoryStateStore] = OrderedDict()

    def admit(self, key: str) -> None:
        """Count one request.

        Args:
            key: id of the token.

        Raises:
            RateLimited: the bucket is empty; names the seconds until the next request is admitted.
        """
        state = self._state(key)
        decision = state.check(self._bucket, self._rates, int(self._now() * 1000), 1)  # type: ignore[no-untyped-call]
        if not decision.allowed:
            raise RateLimited(max(1, math.ceil((decision.retry_after_ms or 0) / 1000)))

    def _state(self, key: str) -> InMemoryStateStore:
        with self._lock:
            state = self._states.get(key)
            if state is None:
                state = self._states[key] = InMemoryStateStore()
                if len(self._states) > MOST_KEYS:
                    self._states.popitem(last=False)
            else:
                self._states.move_to_end(key)
            return state
