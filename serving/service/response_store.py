"""Responses that clients may ask for again or go on from, in a SQLite file of the state folder.

A response belongs to the token that made it: what one token may read never reaches another one.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parquetry.errors import StorageError
from parquetry.serving.access.principals import Principal
from parquetry.serving.state.folder import private_file

FILE = "responses.db"
_BUSY_MS = 10_000
_TABLE = """CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    user_id TEXT,
    expires REAL NOT NULL,
    previous TEXT,
    input TEXT NOT NULL,
    response TEXT NOT NULL
) STRICT"""
_INDEX = "CREATE INDEX IF NOT EXISTS responses_expire ON responses (expires)"
_OPERATOR = "operator"
SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response with the input that it answers."""

    id: str
    previous: str | None
    """id of the response that it goes on from"""
    input: Sequence[Mapping[str, Any]]
    """items of its own request"""
    response: Mapping[str, Any]


def owner_of(principal: Principal) -> str | None:
    """Return whom the responses of a caller belong to; None if they cannot be kept, for nobody could be told apart."""
    if principal.token_id is not None:
        return f"token {principal.token_id}"
    return _OPERATOR if principal.operator else None


class ResponseStore:
    """The responses of a service. Safe to use from several threads and processes.

    Args:
        state: state folder of the service.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, state: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                private_file(state / FILE), check_same_thread=False, isolation_level=None
            )
            self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self._connection.execute("PRAGMA journal_mode = WAL")
            # What is deleted is gone from the file.
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.execute(_TABLE)
            self._connection.execute(_INDEX)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"the responses in {state} cannot be opened: {error}") from error

    def save(self, stored: StoredResponse, principal: Principal, days: float) -> None:
        """Keep a response, and delete those that have expired.

        Args:
            stored: the response.
            principal: its owner, who has one (`owner_of`).
            days: time to keep it.

        Raises:
            StorageError: it cannot be written.
        """
        now = time.time()
        values = (
            *(stored.id, owner_of(principal), principal.user_id, now + days * SECONDS_PER_DAY, stored.previous),
            *(json.dumps(stored.input), json.dumps(stored.response)),
        )
        self._run("DELETE FROM responses WHERE expires <= ?", (now,))
        self._run("INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def get(self, response_id: str, principal: Principal) -> StoredResponse | None:
        """Return a response; None if it does not exist for its caller, or no more.

        Raises:
            StorageError: it cannot be read.
        """
        found = self._run(
            "SELECT id, previous, input, response FROM responses WHERE id = ? AND owner = ? AND expires > ?",
            (response_id, owner_of(principal), time.time()),
        )
        for known, previous, given, response in found:
            return StoredResponse(known, previous, json.loads(given), json.loads(response))
        return None

    def delete(self, response_id: str, principal: Principal) -> bool:
        """Delete a response; return False if it does not exist for its caller.

        Raises:
            StorageError: it cannot be deleted.
        """
        return bool(
            self._run(
                "DELETE FROM responses WHERE id = ? AND owner = ? AND expires > ? RETURNING id",
                (response_id, owner_of(principal), time.time()),
            )
        )

    def forget(self, user_id: str) -> int:
        """Delete the responses of a user; return their number."""
        deleted = self._run("DELETE FROM responses WHERE user_id = ? RETURNING id", (user_id,))
        # What was deleted stands in the log of changes, too.
        self._run("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(deleted)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _run(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._lock:
                return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"the responses cannot be read or written: {error}") from error
