"""Times of the last use of tokens, written by a thread of its own at most once a minute for each token."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

from parquetry.errors import StorageError
from parquetry.printing import tell
from parquetry.serving.access.token_table import TokenTable

INTERVAL = 60
"""minimum seconds between two writes for one token, over all processes"""
GATHERED = 10.0
"""seconds for which uses are gathered before they are written together: a write delays requests by milliseconds"""


class LastUsed:
    """Writer of `last_used_at`. Thread-safe; a request only notes the use.

    Args:
        state: state folder of the service.
        gathered: seconds for which uses are gathered before they are written.
    """

    def __init__(self, state: Path, gathered: float = GATHERED) -> None:
        self._state = state
        self._gathered = gathered
        self._lock = threading.Lock()
        self._waiting: dict[str, int] = {}
        self._noted: dict[str, int] = {}
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = False

    def note(self, token_id: str, now: int, stored: int | None) -> None:
        """Note a use.

        Args:
            token_id: id of the token.
            now: time of the use, in seconds since the epoch.
            stored: the time that is stored.
        """
        if stored is not None and now - stored < INTERVAL:
            return
        # Without the lock, as the other requests of this minute only read.
        if now - self._noted.get(token_id, -INTERVAL) < INTERVAL:
            return
        with self._lock:
            self._noted[token_id] = self._waiting[token_id] = now
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_always, name="tokens-last-used", daemon=True)
                self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Write what is waiting and stop."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._write()

    def _write_always(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(self._gathered)
            self._wake.clear()
            self._write()

    def _write(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        try:
            # A connection of its own: a request must not wait while this one waits for another process.
            with closing(TokenTable(self._state)) as table, table.writing() as connection:
                connection.executemany(
                    "UPDATE tokens SET last_used_at = ? WHERE id = ? AND coalesce(last_used_at, 0) < ?",
                    [(at, token_id, at) for token_id, at in waiting.items()],
                )
        except StorageError as error:
            if not self._complained:
                tell(f"parquetry: the last use of tokens is not recorded: {error}", err=True)
            self._complained = True
