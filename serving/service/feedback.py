"""Judgements on results and answers, in a SQLite file of the state folder that all processes share."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parquetry.serving.access.principals import Principal
from parquetry.serving.state.database import StateDatabase

FILE = "feedback.db"
_TABLES = """CREATE TABLE IF NOT EXISTS feedback (
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
    token_id TEXT,
    answer_id TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS answers (
    at REAL NOT NULL,
    answer_id TEXT NOT NULL,
    query TEXT NOT NULL,
    good INTEGER NOT NULL,
    model TEXT NOT NULL,
    follows INTEGER NOT NULL,
    cited INTEGER NOT NULL,
    version INTEGER,
    user_id TEXT,
    token_id TEXT
) STRICT"""
_ADDED = (("feedback", "answer_id TEXT"),)
_COLUMNS = "id, at, namespace, query, document_id, chunk_id, relevant, comment, version, user_id, answer_id"
_ANSWER = "at, answer_id, query, good, model, follows, cited, version, user_id"
_OWN = "user_id IS ? AND (user_id IS NOT NULL OR token_id IS ?)"
"""rows of one judge: of a user with any token, of a token without a user, or of the operator"""


@dataclass(frozen=True, slots=True)
class Judge:
    """The maker of a judgement."""

    user_id: str | None = None
    token_id: str | None = None
    """None, like the user, for the operator"""

    @classmethod
    def of(cls, principal: Principal) -> Judge:
        """Return the judge that a principal is."""
        return cls(principal.user_id, principal.token_id)

    @property
    def key(self) -> tuple[str | None, str | None]:
        """Values that rows of this judge have, as `_OWN` compares them."""
        return (self.user_id, self.token_id)


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
    user_id: str | None = None
    """user of the judge's token"""
    answer_id: str | None = None
    """the answer that was judged good and cites this; None if the result itself was judged"""


@dataclass(frozen=True, slots=True)
class AnswerFeedback:
    """A judgement on an answer that a language model wrote."""

    at: datetime
    """UTC"""
    answer_id: str
    query: str
    good: bool
    model: str
    """agent or model"""
    follows: bool
    """True if earlier turns of the chat go before the question, which says less without them"""
    cited: int
    """number of passages that it cites"""
    version: int | None
    user_id: str | None


@dataclass(frozen=True, slots=True)
class JudgedResult:
    """A result to judge."""

    namespace: str
    document_id: str
    chunk_id: str | None = None


class FeedbackStore:
    """The judgements of a service. Safe to use from several threads and processes.

    Args:
        state: state folder of the service.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, state: Path) -> None:
        self._database = StateDatabase(state, FILE, _TABLES, "feedback", _ADDED)

    def judge(
        self,
        judge: Judge,
        query: str,
        result: JudgedResult,
        *,
        relevant: bool,
        comment: str | None = None,
        version: int | None = None,
    ) -> Feedback:
        """Keep a judgement in the place of the judge's former one on the same; it is on disk once this returns.

        Args:
            judge: who judges.
            query: question as typed.
            result: what is judged.
            relevant: True if it answers the question.
            comment: remark of the judge.
            version: version of the corpus that the result is from.

        Raises:
            StorageError: it cannot be written.
        """
        with self._database.transaction() as connection:
            _delete(connection, judge, query, result)
            row = _insert(connection, judge, query, result, (int(relevant), comment, version, None))
        return _feedback(row)

    def take_back(self, judge: Judge, query: str, result: JudgedResult) -> None:
        """Delete the judgement of a judge on a result, if there is one.

        Raises:
            StorageError: it cannot be written.
        """
        with self._database.transaction() as connection:
            _delete(connection, judge, query, result)

    def judged(self, judge: Judge, query: str) -> dict[tuple[str, str | None], bool]:
        """Return what a judge said of the results of a question: document and chunk -> relevant."""
        rows = self._database.rows(
            f"""SELECT document_id, chunk_id, relevant FROM feedback WHERE query = ? AND answer_id IS NULL AND {_OWN}
            ORDER BY id""",
            (query, *judge.key),
        )
        return {(document, chunk): bool(relevant) for document, chunk, relevant in rows}

    def judge_answer(
        self,
        judge: Judge,
        answer_id: str,
        query: str,
        *,
        good: bool | None,
        model: str = "",
        follows: bool = False,
        cited: Sequence[JudgedResult] = (),
        version: int | None = None,
    ) -> None:
        """Keep a judgement on an answer in the place of the judge's former one.

        The passages that a good answer cites count as relevant for its question, unless earlier turns go before it. A
        bad answer says nothing of them: it may be bad in spite of them.

        Args:
            judge: who judges.
            answer_id: id of the answer.
            query: the question.
            good: None takes the judgement back.
            model: agent or model that wrote it.
            follows: earlier turns go before the question.
            cited: passages that the answer cites.
            version: version of the corpus.

        Raises:
            StorageError: it cannot be written.
        """
        with self._database.transaction() as connection:
            for table in ("answers", "feedback"):
                connection.execute(f"DELETE FROM {table} WHERE answer_id = ? AND {_OWN}", (answer_id, *judge.key))
            if good is None:
                return
            connection.execute(
                f"INSERT INTO answers ({_ANSWER}, token_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (time.time(), answer_id, query, int(good), model, int(follows), len(cited), version, *judge.key),
            )
            for each in cited if good and not follows else ():
                _insert(connection, judge, query, each, (1, None, version, answer_id))

    def list(
        self,
        namespaces: Collection[str] | None,
        limit: int = 100,
        offset: int = 0,
        *,
        own: Judge | None = None,
    ) -> Sequence[Feedback]:
        """Return judgements on results, the newest first.

        Args:
            namespaces: only of these namespaces; None for all.
            limit: maximum number.
            offset: number of judgements to leave out.
            own: only those of this judge; None for all.
        """
        names: tuple[str | None, ...] = tuple(namespaces or ())
        chosen = "true" if namespaces is None else f"namespace IN ({', '.join('?' * len(names))})"
        if own is not None:
            chosen, names = f"{chosen} AND {_OWN}", (*names, *own.key)
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM feedback WHERE {chosen} ORDER BY id DESC LIMIT ? OFFSET ?",
            (*names, limit, offset),
        )
        return [_feedback(row) for row in rows]

    def answers(self, limit: int = 100, offset: int = 0, *, own: Judge | None = None) -> Sequence[AnswerFeedback]:
        """Return judgements on answers, the newest first; arguments as for `list`."""
        chosen, values = ("true", ()) if own is None else (_OWN, own.key)
        rows = self._database.rows(
            f"SELECT {_ANSWER} FROM answers WHERE {chosen} ORDER BY at DESC, rowid DESC LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        return [
            AnswerFeedback(datetime.fromtimestamp(at, UTC), answer, query, bool(good), model, bool(follows), *rest)
            for at, answer, query, good, model, follows, *rest in rows
        ]

    def forget(self, user_id: str) -> int:
        """Delete the judgements of a user; return their number."""
        return sum(
            self._database.erase(
                ("DELETE FROM feedback WHERE user_id = ?", (user_id,)),
                ("DELETE FROM answers WHERE user_id = ?", (user_id,)),
            )
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _delete(connection: sqlite3.Connection, judge: Judge, query: str, result: JudgedResult) -> None:
    place = (result.namespace, query, result.document_id, result.chunk_id, *judge.key)
    connection.execute(
        f"""DELETE FROM feedback WHERE namespace = ? AND query = ? AND document_id = ? AND chunk_id IS ?
        AND answer_id IS NULL AND {_OWN}""",
        place,
    )


def _insert(
    connection: sqlite3.Connection, judge: Judge, query: str, result: JudgedResult, rest: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Insert a judgement with its `relevant`, `comment`, `version` and `answer_id`; return its row."""
    values = (time.time(), result.namespace, query, result.document_id, result.chunk_id, *rest, *judge.key)
    (row,) = connection.execute(
        f"""INSERT INTO feedback (at, namespace, query, document_id, chunk_id, relevant, comment, version, answer_id,
        user_id, token_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}""",
        values,
    ).fetchall()
    found: tuple[Any, ...] = row
    return found


def _feedback(row: Sequence[Any]) -> Feedback:
    number, at, namespace, query, document_id, chunk_id, relevant, comment, version, user, answer = row
    moment = datetime.fromtimestamp(at, UTC)
    return Feedback(
        number, moment, namespace, query, document_id, chunk_id, bool(relevant), comment, version, user, answer
    )
