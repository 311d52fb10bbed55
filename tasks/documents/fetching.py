"""Read-ahead: fetch a run's documents concurrently for each service, in bounded memory, within its rate limit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from parquetry.freed_memory import Relievable
from parquetry.model import Item
from parquetry.net.rate_limiter import RATE_LIMITER, host_of
from parquetry.sources.base import Source
from parquetry.sources.local.source import is_local
from parquetry.sources.registry import Scope
from parquetry.tasks.engine.retries import Retries
from parquetry.waiting import Waits

AT_A_TIME = 16
"""concurrent fetches from one service: they spend most of the time waiting for it"""
BYTES_AHEAD = 32 * 1024 * 1024
"""bytes fetched and not yet extracted, over the whole run; a larger document is held alone"""
_LOOK_SECONDS = 1.0
"""seconds between two checks for cancellation"""


@dataclass(frozen=True, slots=True)
class _Place:
    """The location of one source's documents."""

    source: Source
    name: str
    host: str
    """empty for this machine"""
    per_second: float | None


class Fetching:
    """Fetch the documents of a run. Used from all its threads.

    Args:
        sources: (namespace, name) -> source.
        scopes: (namespace, name) -> settings of the source; a source without an entry is on this machine.
        retries: retries of the run.
        pause: waits the given number of seconds, or raises because the run was cancelled.
        waits: records the documents being fetched, by path.
    """

    def __init__(
        self,
        sources: Mapping[tuple[str, str], Source],
        scopes: Mapping[tuple[str, str], Scope],
        retries: Retries,
        pause: Callable[[float], None],
        waits: Waits,
    ) -> None:
        self._places = {key: _place(key[1], source, scopes.get(key)) for key, source in sources.items()}
        self._retries = retries
        self._pause = pause
        self._waits = waits
        self._ahead = _Ahead(BYTES_AHEAD, pause)
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()

    def host(self, namespace: str, source: str) -> str:
        """Return the service that a source's documents are read from; empty for this machine."""
        return self._places[namespace, source].host

    def add(self, key: tuple[str, str], source: Source, scope: Scope) -> None:
        """Add a source that the run opens later.

        Args:
            key: namespace and name.
            source: the source.
            scope: its settings.
        """
        self._places[key] = _place(key[1], source, scope)

    def start(self, namespace: str, source: str, function: Callable[[], None]) -> Future[None]:
        """Run a function for a document: immediately for this machine, otherwise in a thread of its service."""
        host = self.host(namespace, source)
        if not host:
            done: Future[None] = Future()
            function()
            done.set_result(None)
            return done
        with self._lock:
            if host not in self._threads:
                self._threads[host] = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="fetch")
            return self._threads[host].submit(function)

    def wait_for(self, future: Future[None]) -> None:
        """Wait until a started function is done, or the run is cancelled."""
        while not wait([future], _LOOK_SECONDS).done:
            self.check_cancelled()
        future.result()

    def check_cancelled(self) -> None:
        """Raise if the run was cancelled."""
        self._pause(0)

    def fetch(self, namespace: str, source: str, item: Item) -> tuple[Item, bytes]:
        """Call `Source.fetch` within the configured rate, retrying temporary failures."""
        place = self._places[namespace, source]

        def one_try() -> tuple[Item, bytes]:
            if place.per_second is not None:
                self._pause(RATE_LIMITER.reserve(place.host, place.per_second))
            with self._waits.on(item.path):
                return place.source.fetch(item)

        return self._retries.call(place.name, one_try)

    def make_room(self, size: int) -> None:
        """Wait until a document of that many bytes fits in the memory allowed."""
        self._ahead.take(size)

    def give_back(self, size: int) -> None:
        """Release the memory of a document that is extracted or abandoned."""
        self._ahead.give(size)

    def give_memory_back(self) -> None:
        """Have the sources free what only reading documents needs."""
        for place in self._places.values():
            if isinstance(place.source, Relievable):
                place.source.give_memory_back()

    def close(self) -> None:
        """Cancel fetches that have not begun."""
        with self._lock:
            for threads in self._threads.values():
                threads.shutdown(wait=False, cancel_futures=True)
        self.give_memory_back()


class _Ahead:
    """The memory allowed for documents that are fetched and not yet extracted."""

    def __init__(self, limit: int, pause: Callable[[float], None]) -> None:
        self._limit = limit
        self._pause = pause
        self._taken = 0
        self._free = threading.Condition()

    def take(self, size: int) -> None:
        while True:
            with self._free:
                if not self._taken or self._taken + size <= self._limit:
                    self._taken += size
                    return
                self._free.wait(_LOOK_SECONDS)
            self._pause(0)

    def give(self, size: int) -> None:
        with self._free:
            self._taken -= size
            self._free.notify_all()


def _place(name: str, source: Source, scope: Scope | None) -> _Place:
    if scope is None or is_local(scope.settings.uri):
        return _Place(source, name, "", None)
    return _Place(source, name, host_of(scope.settings.uri), scope.settings.requests_per_second)
