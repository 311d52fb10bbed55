"""The table of jobs, and its rows as objects."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from parquetry.serving.jobs.model import Job

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    namespace TEXT,
    state TEXT NOT NULL DEFAULT 'queued',
    payload TEXT NOT NULL,
    user_id TEXT,
    org_id TEXT,
    token_id TEXT,
    result TEXT,
    reason TEXT,
    detail TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    progress TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    pid INTEGER,
    process TEXT,
    cancel_asked INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, number);
CREATE INDEX IF NOT EXISTS jobs_by_end ON jobs (finished_at) WHERE finished_at IS NOT NULL;
"""
COLUMNS = (
    "id, kind, namespace, state, payload, user_id, org_id, token_id, result, reason, detail, created_at, started_at, "
    "finished_at, progress, attempts, number"
)
REMOVALS = """
SELECT id, namespace, json_array_length(payload, '$.documents'), json_extract(payload, '$.documents[0].name'),
    finished_at
FROM jobs AS removal
WHERE finished_at >= ? AND kind = 'remove' AND state = 'completed' AND json_extract(payload, '$.undo') AND NOT EXISTS (
    SELECT 1 FROM jobs AS undo
    WHERE undo.kind = 'reinstate' AND undo.state <> 'failed' AND json_extract(undo.payload, '$.removal') = removal.id
)"""
OWNER = ("user_id", "org_id", "token_id")
"""columns on who asked for a job"""


@dataclass(frozen=True, slots=True)
class Removal:
    """A removal that can be undone, without the list of its documents."""

    id: str
    namespace: str | None
    documents: int
    name: str | None
    """of the first document"""
    finished_at: int
    """microseconds since 1970"""


def job_of(row: Sequence[Any]) -> Job:
    """Return the job of a row with the columns `COLUMNS`."""
    id_, kind, namespace, state, payload, *owner = row[:8]
    result, reason, detail, created, started, finished, progress, attempts, number = row[8:]
    return Job(
        id=id_,
        kind=kind,
        namespace=namespace,
        state=state,
        payload=json.loads(payload),
        owner=dict(zip(OWNER, owner, strict=True)),
        result=None if result is None else json.loads(result),
        reason=reason,
        detail=detail,
        created_at=_time(created),
        started_at=None if started is None else _time(started),
        finished_at=None if finished is None else _time(finished),
        progress=None if progress is None else json.loads(progress),
        attempts=attempts,
        number=number,
    )


def json_of(value: Mapping[str, Any]) -> str:
    """Return a value as the table keeps it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def now() -> int:
    """Return microseconds since 1970."""
    return time.time_ns() // 1000


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
