"""SQLite files of the state folder, which all processes of a service share."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from parquetry.errors import StorageError
from parquetry.serving.state.folder import private_file

_BUSY_MS = 10_000
"""milliseconds to wait for another process that writes"""


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo the transaction of a connection; SQLite has done so itself after some errors, as of a full disk."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


class StateDatabase:
    """One SQLite file. Safe to use from many threads and processes.

    Args:
        state: state folder of the service.
        file: name of the file.
        schema: statements that create what is missing, divided by semicolons.
        holds: what it holds, for messages.
        columns: table and declaration of columns that files of older versions lack.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(
        self, state: Path, file: str, schema: str, holds: str, columns: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._lock = threading.RLock()
        self._holds = holds
        try:
            path = private_file(state / file)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            with ExitStack() as unfinished:
                unfinished.callback(self._connection.close)
                self._prepare(schema, columns)
                unfinished.pop_all()
        except (OSError, sqlite3.Error, StorageError) as error:
            cause = error.__cause__ or error
            raise StorageError(f"{holds} in {state} cannot be opened: {cause}") from error

    def _prepare(self, schema: str, columns: Sequence[tuple[str, str]]) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self.transaction() as connection:
            for statement in schema.split(";"):
                connection.execute(statement)
            for table, column in columns:
                known = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
                if column.partition(" ")[0] not in known:
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Hold the write lock of the file; commit at the end, on disk if `durable`.

        Raises:
            StorageError: the file cannot be read or written.
        """
        with self._lock, self._translated(), ExitStack() as unfinished:
            connection = self._connection
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            unfinished.callback(roll_back, connection)
            yield connection
            connection.execute("COMMIT")
            unfinished.pop_all()

    def rows(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        Raises:
            StorageError: the file cannot be read.
        """
        with self._lock, self._translated():
            return self._connection.execute(statement, values).fetchall()

    def write(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Carry out one statement in a transaction of its own, on disk; return the number of rows that it changed.

        Raises:
            StorageError: the file cannot be written.
        """
        with self.transaction() as connection:
            return connection.execute(statement, values).rowcount

    def erase(self, *statements: tuple[str, Sequence[Any]]) -> list[int]:
        """Delete rows so that nothing of them stays in the file; return the number that each statement deleted.

        Raises:
            StorageError: the file cannot be written.
        """
        with self._lock, self._translated():
            self._connection.execute("PRAGMA secure_delete = ON")
            with self.transaction() as connection:
                deleted = [connection.execute(statement, values).rowcount for statement, values in statements]
            # What was deleted stands in the log of changes, too.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return deleted

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate an error of SQLite: a full disk, a damaged file, a lock that is held too long."""
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"{self._holds} cannot be read or written: {error}; look after its disk") from error
