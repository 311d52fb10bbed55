"""The latest answers of a service, kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class AnswerCache(Generic[Value]):
    """Keeps the values that were asked for last. Safe to use from several threads.

    What an answer depends on must all be in its key: nothing is ever taken out because it is old.

    Args:
        entries: most values to keep; 0 keeps none.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """The value kept under a key, which becomes the one asked for last; None if there is none."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value, and let go of the one that was not asked for the longest if there are too many."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._entries:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)
