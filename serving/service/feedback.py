"""Judgements on answers, in a SQLite file of the state folder that all processes share."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from parquetry.serving.state.database import StateDatabase

FILE = "feedback.db"
_TABLE = """CREATE TABLE IF NOT EXISTS feedback (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    namespace TEXT NOT NULL,
    query TEXT NOT NULL,
    document_id TEXT NOT NULL,
    chunk_id TEXT,
    relevant INTEGER NOT NULL,
    comment TEXT,
    version INTEGER,
    user_id TEXT,
    token_id TEXT
) STRICT"""
_COLUMNS = "id, at, namespace, query, document_id, chunk_id, relevant, comment, version"


@dataclass(frozen=True, slots=True)
class Feedback:
    """A judgement on one result of a question."""

    id: int
    at: datetime
    """UTC"""
    namespace: str
    query: str
    document_id: str
    chunk_id: str | None
    relevant: bool
    comment: str | None
    version: int | None
    """version of the corpus that was answered from"""


class FeedbackStore:
    """The judgements of a service. Safe to use from several threads and processes.

    Args:
        state: state folder of the service.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, state: Path) -> None:
        self._database = StateDatabase(state, FILE, _TABLE, "feedback")

    def add(
        self,
        namespace: str,
        query: str,
        document_id: str,
        *,
        relevant: bool,
        chunk_id: str | None = None,
        comment: str | None = None,
        version: int | None = None,
        user_id: str | None = None,
        token_id: str | None = None,
    ) -> Feedback:
        """Keep a judgement; it is on disk once this returns.

        Raises:
            StorageError: it cannot be written.
        """
        values = (
            *(time.time(), namespace, query, document_id, chunk_id, int(relevant), comment, version),
            *(user_id, token_id),
        )
        with self._database.transaction() as connection:
            (row,) = connection.execute(
                f"""INSERT INTO feedback (at, namespace, query, document_id, chunk_id, relevant, comment, version,
                user_id, token_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}""",
                values,
            ).fetchall()
        return _feedback(row)

    def list(
        self,
        namespaces: Collection[str] | None,
        limit: int = 100,
        offset: int = 0,
        *,
        own: tuple[str | None, str | None] | None = None,
    ) -> Sequence[Feedback]:
        """Return judgements, the newest first.

        Args:
            namespaces: only of these namespaces; None for all.
            limit: maximum number.
            offset: number of judgements to leave out.
            own: only those of this user, or without one of this token; None for all.
        """
        names: tuple[str | None, ...] = tuple(namespaces or ())
        chosen = "true" if namespaces is None else f"namespace IN ({', '.join('?' * len(names))})"
        if own is not None:
            user, token = own
            column, value = ("token_id", token) if user is None else ("user_id", user)
            chosen, names = f"{chosen} AND {column} = ?", (*names, value)
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM feedback WHERE {chosen} ORDER BY id DESC LIMIT ? OFFSET ?",
            (*names, limit, offset),
        )
        return [_feedback(row) for row in rows]

    def forget(self, user_id: str) -> int:
        """Delete the judgements of a user; return their number."""
        (deleted,) = self._database.erase(("DELETE FROM feedback WHERE user_id = ?", (user_id,)))
        return deleted

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _feedback(row: tuple[int, float, str, str, str, str | None, int, str | None, int | None]) -> Feedback:
    number, at, namespace, query, document_id, chunk_id, relevant, comment, version = row
    moment = datetime.fromtimestamp(at, UTC)
    return Feedback(number, moment, namespace, query, document_id, chunk_id, bool(relevant), comment, version)
