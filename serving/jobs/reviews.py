"""Merges that wait for a person, and the answers: one SQLite file, shared by all processes of a service."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from parquetry.model import Access
from parquetry.serving.jobs.table import now
from parquetry.serving.state.database import StateDatabase
from parquetry.sessions.merge.effects import MergeProposal

FILE = "reviews.db"
Answer = Literal["approved", "rejected"]
KEPT_SECONDS = 30 * 24 * 3600
"""seconds for which a question and its answer are kept"""
_COLUMNS = (
    "key, job_id, namespace, session_uri, session_user, learned, replaced, merged, reasoning, visibility, org_id, "
    "user_id, asked_at, answer"
)
_SCHEMA = """CREATE TABLE IF NOT EXISTS reviews (
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    session_uri TEXT NOT NULL,
    session_user TEXT,
    learned TEXT NOT NULL,
    replaced TEXT NOT NULL,
    merged TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    visibility TEXT NOT NULL,
    org_id TEXT,
    user_id TEXT,
    asked_at INTEGER NOT NULL,
    answer TEXT,
    answered_at INTEGER,
    PRIMARY KEY (key, job_id)
) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Review:
    """A merge that a person is asked about."""

    key: str
    """of the merge, the same however often the run restarts"""
    job_id: str
    """job that waits for the answer"""
    namespace: str
    session_uri: str
    learned: str
    """the new statement"""
    replaced: tuple[str, ...]
    """texts of the entries that the merge replaces"""
    merged: str
    """text that replaces all of them"""
    reasoning: str
    access: Access
    asked_at: datetime
    """UTC"""
    answer: Answer | None


class ReviewStore:
    """The reviews of a service. Safe to use from many threads and processes.

    Args:
        state: state folder of the service.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, state: Path) -> None:
        self._database = StateDatabase(state, FILE, _SCHEMA, "the reviews of merges")

    def ask(self, job_id: str, proposals: Sequence[MergeProposal]) -> None:
        """Ask about merges of a job, in the place of those that it asked about before and nobody answered.

        Raises:
            StorageError: they cannot be written.
        """
        values = [_values(job_id, each) for each in proposals]
        marks = ", ".join("?" * (len(_COLUMNS.split(",")) - 1))
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM reviews WHERE job_id = ? AND answer IS NULL", (job_id,))
            # A later run asks about the same merge: it is answered once.
            connection.executemany(
                "DELETE FROM reviews WHERE answer IS NULL AND key = ?", [(each.key,) for each in proposals]
            )
            connection.execute("DELETE FROM reviews WHERE asked_at < ?", (now() - KEPT_SECONDS * 1_000_000,))
            connection.executemany(f"INSERT OR IGNORE INTO reviews ({_COLUMNS}) VALUES ({marks}, NULL)", values)

    def answers(self, job_id: str) -> Mapping[str, Answer]:
        """Return the answers to the merges of a job: key -> answer."""
        found = self._database.rows(
            "SELECT key, answer FROM reviews WHERE job_id = ? AND answer IS NOT NULL", (job_id,)
        )
        return dict(found)

    def waiting(self, job_id: str | None = None) -> Sequence[Review]:
        """Return what nobody has answered, the oldest first: of one job, or of all."""
        return self._read("answer IS NULL AND (? IS NULL OR job_id = ?) ORDER BY asked_at, key", (job_id, job_id))

    def get(self, job_id: str, key: str) -> Review | None:
        """Return a review; None if there is none."""
        return next(iter(self._read("job_id = ? AND key = ?", (job_id, key))), None)

    def answer(self, job_id: str, key: str, answer: Answer) -> bool:
        """Record an answer; return False if there is one already, which stays."""
        changed = self._database.write(
            "UPDATE reviews SET answer = ?, answered_at = ? WHERE job_id = ? AND key = ? AND answer IS NULL",
            (answer, now(), job_id, key),
        )
        return changed == 1

    def withdraw(self, job_ids: Collection[str]) -> None:
        """Forget what jobs asked about and nobody answered: they are given up."""
        marks = ", ".join("?" * len(job_ids))
        self._database.write(f"DELETE FROM reviews WHERE answer IS NULL AND job_id IN ({marks})", tuple(job_ids))

    def forget(self, user_id: str) -> int:
        """Delete what was learned from the sessions of a user; return the number of merges."""
        (deleted,) = self._database.erase(
            ("DELETE FROM reviews WHERE session_user = ? OR user_id = ?", (user_id, user_id))
        )
        return deleted

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _read(self, where: str, values: Sequence[Any]) -> Sequence[Review]:
        found = self._database.rows(f"SELECT {_COLUMNS} FROM reviews WHERE {where}", values)
        return [_review(row) for row in found]


def _values(job_id: str, proposal: MergeProposal) -> tuple[Any, ...]:
    access = proposal.access
    return (
        *(proposal.key, job_id, proposal.namespace, proposal.session_uri, proposal.session_user, proposal.learned),
        *(json.dumps(proposal.replaced, ensure_ascii=False), proposal.merged, proposal.reasoning),
        *(access.visibility, access.org_id, access.user_id, now()),
    )


def _review(row: Sequence[Any]) -> Review:
    key, job_id, namespace, uri, _, learned, replaced, merged, reasoning, visibility, org, user, asked, answer = row
    at = datetime.fromtimestamp(asked / 1_000_000, UTC)
    access = Access(visibility, org, user)
    return Review(
        key, job_id, namespace, uri, learned, tuple(json.loads(replaced)), merged, reasoning, access, at, answer
    )
