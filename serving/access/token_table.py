"""The SQLite file `tokens.db` of the state folder, opened and checked by each process that uses it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from parquetry.errors import SettingsError, StorageError
from parquetry.serving.state.database import roll_back
from parquetry.serving.state.folder import private_file
from parquetry.storage.files.durable import PRIVATE, make_folder

FILE = "tokens.db"
VERSION = 1
"""version of the table, in `PRAGMA user_version`"""
_LONGEST_PATH = 490
"""bytes of the file's path: SQLite takes 512 with the ending of its journal"""
_BUSY_SECONDS = 10.0
"""seconds to wait for another process that writes"""
_TABLE = """
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    shown TEXT NOT NULL,
    name TEXT NOT NULL,
    user_id TEXT,
    org_id TEXT,
    namespaces TEXT,
    default_namespace TEXT,
    rights TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT
"""


class TokenTable:
    """Connection to `tokens.db`. Thread-safe, also across forks; changes of other processes are seen at once.

    Args:
        state: state folder; created with the file if missing, readable by its owner only.

    Raises:
        SettingsError: the path of the file is too long.
        StorageError: the file cannot be opened, or was written by a newer program.
    """

    def __init__(self, state: Path) -> None:
        self.file = state.absolute() / FILE
        length = len(os.fsencode(self.file))
        if length > _LONGEST_PATH:
            raise SettingsError(
                f"the path of {FILE} is {length} B long, and may have {_LONGEST_PATH}; set `state` in [serve] to a "
                "folder with a shorter path"
            )
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int, int] | None = None
        with self.reading():
            pass

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._opened = None

    def one(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a query."""
        with self.reading() as connection:
            row: tuple[Any, ...] | None = connection.execute(statement, values).fetchone()
            return row

    def all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.reading() as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Provide the connection, for this thread alone.

        Raises:
            StorageError: the file cannot be read.
        """
        with self._lock, self._faults():
            yield self._current()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Provide the connection within a transaction that commits when the block ends without an error.

        Raises:
            StorageError: the file cannot be written.
        """
        with self.reading() as connection, ExitStack() as unfinished:
            connection.execute("BEGIN IMMEDIATE")
            unfinished.callback(roll_back, connection)
            yield connection
            connection.execute("COMMIT")
            unfinished.pop_all()

    def _current(self) -> sqlite3.Connection:
        place = self._place()
        if self._connection is None or place is None or place != self._opened:
            # A deleted or replaced file must not go on answering from the old one; nor may a child use its parent's.
            if self._connection is not None and (self._opened or (0,))[0] == os.getpid():
                self._connection.close()
            self._connection = self._open()
            self._opened = self._place()
        return self._connection

    def _place(self) -> tuple[int, int, int] | None:
        try:
            status = self.file.stat()
        except FileNotFoundError:
            return None
        return os.getpid(), status.st_dev, status.st_ino

    def _open(self) -> sqlite3.Connection:
        make_folder(self.file.parent, PRIVATE)
        # SQLite gives its journal the mode of the database.
        connection = sqlite3.connect(
            private_file(self.file), timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        with ExitStack() as unfinished:
            unfinished.callback(connection.close)
            self._prepare(connection)
            unfinished.pop_all()
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        if version > VERSION:
            raise StorageError(f"{self.file}: written by a newer program (version {version}); update this one")
        # Not WAL: a write-ahead log that is left when the file is deleted or replaced would bring old tokens back.
        connection.execute("PRAGMA journal_mode = DELETE").close()
        # A revocation survives a power cut.
        connection.execute("PRAGMA synchronous = EXTRA")
        if version < VERSION:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"{self.file}: {error}; tokens cannot be checked until it is repaired") from error
        except OSError as error:
            raise StorageError(f"{self.file}: {error.strerror or error}; tokens cannot be checked") from error
