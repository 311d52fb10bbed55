"""Responses that clients may ask for again or go on from, in a SQLite file of the state folder.

A response belongs to the token that made it: what one token may read never reaches another one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parquetry.serving.access.principals import Principal
from parquetry.serving.state.database import StateDatabase

FILE = "responses.db"
_SCHEMA = """CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    user_id TEXT,
    expires REAL NOT NULL,
    previous TEXT,
    input TEXT NOT NULL,
    response TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS responses_expire ON responses (expires);
CREATE INDEX IF NOT EXISTS responses_of_owners ON responses (owner)"""
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
        self._database = StateDatabase(state, FILE, _SCHEMA, "responses")

    def save(self, stored: StoredResponse, principal: Principal, days: float, most: int) -> None:
        """Keep a response, and delete those that have expired, and the oldest of an owner who has too many.

        Args:
            stored: the response.
            principal: its owner, who has one (`owner_of`).
            days: time to keep it.
            most: maximum number of its owner's responses.

        Raises:
            StorageError: it cannot be written.
        """
        now = time.time()
        values = (
            *(stored.id, owner_of(principal), principal.user_id, now + days * SECONDS_PER_DAY, stored.previous),
            *(json.dumps(stored.input), json.dumps(stored.response)),
        )
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM responses WHERE expires <= ?", (now,))
            connection.execute("INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            connection.execute(
                "DELETE FROM responses WHERE rowid IN "
                "(SELECT rowid FROM responses WHERE owner = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
                (owner_of(principal), most),
            )

    def get(self, response_id: str, principal: Principal) -> StoredResponse | None:
        """Return a response; None if it does not exist for its caller, or no more.

        Raises:
            StorageError: it cannot be read.
        """
        found = self._database.rows(
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
        condition = "id = ? AND owner = ? AND expires > ?"
        values = (response_id, owner_of(principal), time.time())
        return bool(sum(self._database.erase((f"DELETE FROM responses WHERE {condition}", values))))

    def forget(self, user_id: str) -> int:
        """Delete the responses of a user; return their number."""
        return sum(self._database.erase(("DELETE FROM responses WHERE user_id = ?", (user_id,))))

    def close(self) -> None:
        """Close the file."""
        self._database.close()
