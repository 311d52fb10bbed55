"""Recent answers of a service, kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class AnswerCache(Generic[Value]):
    """Least-recently-used cache. Thread-safe.

    A key must hold everything its answer depends on: entries never expire by age.

    Args:
        entries: maximum number of values to keep; 0 disables the cache.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return the value under a key and mark it as most recently used; None if there is none."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Hashable, value: Value) -> None:
        """Store a value, and evict the least recently used one if the cache is full."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._entries:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)
