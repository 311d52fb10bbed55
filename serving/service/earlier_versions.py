"""Readers of earlier versions of a corpus, for comparisons: one at a time, closed when nobody has asked for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings, override

IDLE_SECONDS = 300.0
"""seconds for which the index of a version stays in memory after its last search"""


class EarlierVersions:
    """Open earlier versions. Thread-safe; searches of different versions wait for each other.

    Args:
        settings: settings of the corpus.
        idle: as `IDLE_SECONDS`.
    """

    def __init__(self, settings: Settings, idle: float = IDLE_SECONDS) -> None:
        # Comparisons are no searches of users.
        self._settings = override(settings, {"search": {"log": None, "record_searches": False, "cache_entries": 0}})
        self._idle = idle
        self._lock = threading.Lock()
        self._reader: Reader | None = None
        self._version: int | None = None
        self._timer: threading.Timer | None = None

    @contextmanager
    def reader(self, version: int) -> Iterator[Reader]:
        """Yield a reader of a version; the first one of a version builds its index, in memory unless its file is kept.

        Raises:
            SettingsError: there is no such version.
            StorageError: it cannot be read.
        """
        with self._lock:
            self._stop_timer()
            with ExitStack() as failed:
                # A reader that failed is not kept.
                failed.callback(self._close)
                if self._reader is None or self._version != version:
                    self._close()
                    self._reader, self._version = Reader(self._settings, version), version
                yield self._reader
                failed.pop_all()
            self._timer = threading.Timer(self._idle, self.close)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            self._stop_timer()
            self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = self._version = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
