"""Pool of searchers for repeated filters: preparing a searcher costs as much as searching."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from parquetry.settings.sections import SearchSettings
from parquetry.storage.index.open_index import OpenIndex
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Searcher

if TYPE_CHECKING:
    from parquetry.storage.index.vector_memory import VectorMemories

KEPT = 64
"""maximum number of idle searchers"""
KEPT_BYTES = 256 << 20
"""bytes that idle searchers hold together, at most, unless the last one takes more by itself"""


class Searchers:
    """Pool of searchers of an index. Thread-safe.

    Args:
        settings: settings of the searchers.
        memories: memory of a long-lived process; None to read index files only.
    """

    def __init__(self, settings: SearchSettings, memories: VectorMemories | None = None) -> None:
        self._settings = settings
        self._memories = memories
        self._idle: list[tuple[OpenIndex, Filters, Searcher]] = []
        self._lock = threading.Lock()

    @contextmanager
    def acquire(self, index: OpenIndex, filters: Filters) -> Iterator[Searcher]:
        """Yield a searcher with an exclusive session; after an error it is discarded.

        Raises:
            SettingsError: a filter is invalid.
        """
        searcher = self._take(index, filters)
        with ExitStack() as unfinished:
            session = index.session() if searcher is None else searcher.connection
            unfinished.callback(session.close)
            if searcher is None:
                memory = self._memories.of(index) if self._memories else None
                searcher = Searcher(session, filters, self._settings, memory)
            yield searcher
            unfinished.pop_all()
        self._put(index, filters, searcher)

    def _take(self, index: OpenIndex, filters: Filters) -> Searcher | None:
        with self._lock:
            for place in reversed(range(len(self._idle))):
                of, prepared, _ = self._idle[place]
                if of is index and prepared == filters:
                    return self._idle.pop(place)[2]
        return None

    def _put(self, index: OpenIndex, filters: Filters, searcher: Searcher) -> None:
        with self._lock:
            self._idle.append((index, filters, searcher))
            surplus = self._surplus()
            closed, self._idle = self._idle[:surplus], self._idle[surplus:]
        for *_, each in closed:
            each.connection.close()

    def _surplus(self) -> int:
        """Return the number of idle searchers to close, of those that were not used the longest."""
        held = 0
        for kept, (*_, searcher) in enumerate(reversed(self._idle)):
            held += searcher.bytes
            if kept == KEPT or (kept and held > KEPT_BYTES):
                return len(self._idle) - kept
        return 0

    def close(self) -> None:
        """Close the idle searchers."""
        with self._lock:
            idle, self._idle = self._idle, []
        for *_, searcher in idle:
            searcher.connection.close()
