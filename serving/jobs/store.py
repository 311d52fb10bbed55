"""Durable queue of jobs: one SQLite file, shared by all processes of a service."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from parquetry.errors import SettingsError, TransientError
from parquetry.masking import masked
from parquetry.serving.jobs.model import FINAL, KINDS, TOGETHER, Job, Kind, State
from parquetry.serving.jobs.table import COLUMNS, OWNER, REMOVALS, SCHEMA, Removal, job_of, json_of, now
from parquetry.serving.state.database import StateDatabase
from parquetry.serving.state.workers import ThisProcess, is_alive

FILE = "jobs.db"
MOST_PAYLOAD = 8 * 1024 * 1024
"""characters of a payload as JSON: the longest paths of as many documents as a request may hold"""
MOST_QUEUED = 10_000
"""jobs that wait; more are refused"""
MOST_QUEUED_OF_ONE = 2_000
"""jobs of one organization, user or token that wait; the local operator has no bound of its own"""
MOST_TOGETHER = 1_000
"""jobs that are carried out in one run"""
MOST_TOGETHER_OF_ONE = 100
"""jobs of one organization, user or token that are carried out in one run as long as others wait"""
MOST_ATTEMPTS = 5
"""processes that may end in the middle of a job before it fails"""
KEPT_SECONDS = 7 * 24 * 3600
"""seconds for which a finished job can be looked up"""
KEPT_JOBS = 10_000
"""finished jobs that can be looked up"""
_ALONE_FROM = 2
"""attempts after which a job is carried out alone: it may be what ends the process"""
_PRUNE_SECONDS = 60.0
_POLLS = ((1.0, 0.01), (10.0, 0.05), (float("inf"), 0.25))
"""seconds waited so far -> seconds until the next look"""


class JobStore:
    """The queue of a service. Safe to use from many threads and processes.

    A job that was submitted, and one that ended, is on disk before the call returns.

    Args:
        state: state folder of the service.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, state: Path) -> None:
        self._pruned = 0.0
        self._database = StateDatabase(state, FILE, SCHEMA, "the queue of jobs")

    def submit(
        self, kind: Kind, namespace: str | None, payload: Mapping[str, Any], owner: Mapping[str, str | None]
    ) -> Job:
        """Queue a job; it is on disk once this returns.

        Args:
            kind: kind of job.
            namespace: namespace of the corpus; None for all.
            payload: what is to be done, JSON-able.
            owner: who asked: any of `user_id`, `org_id` and `token_id`.

        Raises:
            SettingsError: the payload is too large, or a place in it contains a password or token.
            TransientError: too many jobs wait.
        """
        text = _checked(kind, payload)
        job = f"job-{secrets.token_hex(12)}"
        with self._database.transaction() as connection:
            _check_room(connection.execute(_WAITING, _who(owner)).fetchone(), owner)
            connection.execute(
                "INSERT INTO jobs (id, kind, namespace, payload, user_id, org_id, token_id, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (job, kind, namespace, text, *(owner.get(name) for name in OWNER), now()),
            )
        return self._existing(job)

    def check_room(self, owner: Mapping[str, str | None]) -> None:
        """Refuse what could not be queued now, before anything is kept for it.

        Raises:
            TransientError: too many jobs wait.
        """
        _check_room(self._database.rows(_WAITING, _who(owner))[0], owner)

    def get(self, id: str) -> Job | None:
        """Return a job; None if there is none with this id."""
        found = self._select("id = ?", (id,))
        return found[0] if found else None

    def list(
        self,
        *,
        state: State | None = None,
        kind: Kind | None = None,
        owner: Mapping[str, str | None] | None = None,
        namespaces: Collection[str] | None = None,
        after: int = 0,
        limit: int = 100,
        offset: int = 0,
    ) -> Sequence[Job]:
        """Return jobs, the newest first.

        Args:
            state: only jobs in this state.
            kind: only jobs of this kind.
            owner: only jobs whose owner has these values.
            namespaces: only jobs of these namespaces; None for all, also those over all namespaces.
            after: only jobs that were accepted after the one with this number.
            limit: maximum number.
            offset: number of jobs to leave out.
        """
        where = ["number > ?"]
        values: Sequence[Any] = (after,)
        chosen: Sequence[tuple[str, str | None]] = (("state", state), ("kind", kind))
        for column, value in chosen:
            if value is not None:
                where.append(f"{column} = ?")
                values = (*values, value)
        for name, value in (owner or {}).items():
            where.append(f"{_owner_column(name)} IS ?")
            values = (*values, value)
        if namespaces is not None:
            where.append(f"namespace IN ({', '.join('?' * len(namespaces))})")
            values = (*values, *namespaces)
        return self._select(f"{' AND '.join(where)} ORDER BY number DESC LIMIT ? OFFSET ?", (*values, limit, offset))

    def removals(self, where: Mapping[str, str | None], since: int, limit: int = 5) -> Sequence[Removal]:
        """Return the removals that can be undone and were not, the newest first.

        Args:
            where: values of their owner.
            since: microseconds since 1970 at which they were done, or later.
            limit: maximum number.
        """
        owned = "".join(f" AND {_owner_column(name)} IS ?" for name in where)
        rows = self._database.rows(
            f"{REMOVALS}{owned} ORDER BY finished_at DESC LIMIT ?", (since, *where.values(), limit)
        )
        return [Removal(*row) for row in rows]

    def wait(self, id: str, seconds: float) -> Job:
        """Return a job as soon as it is final, or as it is after a time.

        Raises:
            KeyError: there is no such job.
        """
        started = time.monotonic()
        while True:
            job = self._existing(id)
            waited = time.monotonic() - started
            if job.is_final or waited >= seconds:
                return job
            pause = next(pause for until, pause in _POLLS if waited < until)
            time.sleep(min(pause, max(seconds - waited, 0.001)))

    def cancel(self, id: str, *, at_once: bool = True) -> Job:
        """Cancel a job: at once if it waits; a run over whole sources stops at its next safe point.

        A job that waits to be carried out again may have published something before its process ended: the process
        that takes it up looks after that.

        Args:
            id: id of the job.
            at_once: False if something of it is published, although it waits.

        Raises:
            KeyError: there is no such job.
        """
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'cancelled', finished_at = ? "
                "WHERE id = ? AND state = 'queued' AND started_at IS NULL AND ?",
                (now(), id, at_once),
            )
            connection.execute(
                "UPDATE jobs SET cancel_asked = 1 WHERE id = ? AND state IN ('queued', 'running')", (id,)
            )
        return self._existing(id)

    def claim(self, kinds: Collection[Kind] = KINDS) -> Sequence[Job]:
        """Take the oldest waiting job and, if it is an ingest or a removal, others of these kinds.

        Jobs of these kinds are carried out in the order in which they came, as far as that makes a difference: none of
        those taken came after a restore or a clearing among them that still waits. Jobs of other kinds are not waited
        for. While several owners wait, each has its part of a run, so that one with many jobs holds up the others no
        longer than its part takes.

        Args:
            kinds: kinds of jobs to take.

        Returns:
            Jobs that can be carried out in one run, the oldest first; they belong to this process until it ends.
        """
        wanted = f"state = 'queued' AND kind IN ({', '.join(map(repr, sorted(kinds)))})"
        process = ThisProcess.get()
        with self._database.transaction(durable=False) as connection:
            rows = connection.execute(
                f"SELECT number, kind, attempts, {_OWNER} FROM jobs WHERE {wanted} ORDER BY number LIMIT {MOST_QUEUED}"
            ).fetchall()
            numbers = _together(rows)
            marks = ", ".join("?" * len(numbers))
            connection.execute(
                "UPDATE jobs SET state = 'running', started_at = ?, pid = ?, process = ?, attempts = attempts + 1 "
                f"WHERE number IN ({marks})",
                (now(), process.pid, process.started, *numbers),
            )
            self._prune(connection)
            return self._select(f"number IN ({marks}) ORDER BY number", numbers)

    def waits(self, kinds: Collection[Kind] = KINDS) -> bool:
        """Return True if a job of one of these kinds waits."""
        names = ", ".join(map(repr, sorted(kinds)))
        return bool(self._database.rows(f"SELECT 1 FROM jobs WHERE state = 'queued' AND kind IN ({names}) LIMIT 1"))

    def progress(self, id: str, progress: Mapping[str, Any]) -> bool:
        """Record the progress of a running job; return True if it is to be cancelled."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "UPDATE jobs SET progress = ? WHERE id = ? AND state = 'running'", (json_of(progress), id)
            )
        return self.cancel_is_asked(id)

    def cancel_is_asked(self, id: str) -> bool:
        """Return True if a running job is to be cancelled."""
        return any(asked for (asked,) in self._database.rows("SELECT cancel_asked FROM jobs WHERE id = ?", (id,)))

    def replace_payload(self, id: str, payload: Mapping[str, Any]) -> bool:
        """Change what a job is to do; return False if it has ended."""
        statement = "UPDATE jobs SET payload = ? WHERE id = ? AND state IN ('queued', 'running')"
        return self._database.write(statement, (json_of(payload), id)) > 0

    def finish(self, id: str, result: Mapping[str, Any]) -> None:
        """Record the result of a job that is done."""
        self._end(id, "completed", result=result)

    def fail(self, id: str, reason: str, detail: str, result: Mapping[str, Any] | None = None) -> None:
        """Record the failure of a job.

        Args:
            id: id of the job.
            reason: code in kebab-case.
            detail: one sentence, and what to do.
            result: what was done all the same.
        """
        self._end(id, "failed", result=result, reason=reason, detail=masked(detail))

    def cancelled(self, id: str, detail: str) -> None:
        """Record that a running job stopped because it was cancelled."""
        self._end(id, "cancelled", reason="cancelled", detail=masked(detail))

    def release(self, ids: Sequence[str]) -> None:
        """Queue jobs of this process again, which stops in an orderly way before they are done."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'queued', attempts = attempts - 1, pid = NULL, process = NULL "
                f"WHERE state = 'running' AND id IN ({', '.join('?' * len(ids))})",
                tuple(ids),
            )

    def forget(self, user_id: str) -> int:
        """Delete the jobs of a user, also those that wait; return their number."""
        (deleted,) = self._database.erase(("DELETE FROM jobs WHERE user_id = ?", (user_id,)))
        return deleted

    def recover(self) -> int:
        """Queue the running jobs of processes that died again; return their number.

        A job that was in work in too many of such processes fails.
        """
        with self._database.transaction() as connection:
            running = connection.execute(
                "SELECT number, pid, process, attempts FROM jobs WHERE state = 'running'"
            ).fetchall()
            lost = [(number, attempts) for number, pid, process, attempts in running if not is_alive(pid, process)]
            for number, attempts in lost:
                if attempts >= MOST_ATTEMPTS:
                    detail = (
                        f"the process that carried it out ended {attempts} times; `parquetry doctor` and the log of "
                        "the service may tell why. What was handed in is kept: ask for it again"
                    )
                    connection.execute(
                        "UPDATE jobs SET state = 'failed', reason = 'interrupted', detail = ?, finished_at = ? "
                        "WHERE number = ?",
                        (detail, now(), number),
                    )
                else:
                    connection.execute(
                        "UPDATE jobs SET state = 'queued', pid = NULL, process = NULL WHERE number = ?",
                        (number,),
                    )
        return len(lost)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _end(
        self,
        id: str,
        state: State,
        result: Mapping[str, Any] | None = None,
        reason: str | None = None,
        detail: str | None = None,
    ) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, result = ?, reason = ?, detail = ?, finished_at = ?, progress = NULL, "
                "pid = NULL, process = NULL WHERE id = ? AND state = 'running'",
                (state, None if result is None else json_of(result), reason, detail, now(), id),
            )

    def _existing(self, id: str) -> Job:
        job = self.get(id)
        if job is None:
            raise KeyError(id)
        return job

    def _select(self, where: str, values: Sequence[Any]) -> Sequence[Job]:
        rows = self._database.rows(f"SELECT {COLUMNS} FROM jobs WHERE {where}", tuple(values))
        return [job_of(row) for row in rows]

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Forget old jobs that ended, now and then."""
        if time.monotonic() - self._pruned < _PRUNE_SECONDS and self._pruned:
            return
        self._pruned = time.monotonic()
        connection.execute("DELETE FROM jobs WHERE finished_at < ?", (now() - KEPT_SECONDS * 1_000_000,))
        final = ", ".join(map(repr, sorted(FINAL)))
        connection.execute(
            f"DELETE FROM jobs WHERE state IN ({final}) AND number <= (SELECT number FROM jobs WHERE state IN ({final})"
            f" ORDER BY number DESC LIMIT 1 OFFSET {KEPT_JOBS})"
        )


_OWNER = "coalesce(org_id, user_id, token_id, '')"
"""SQL of the one whose jobs are counted together; empty for the local operator"""
_WAITING = f"SELECT count(*), count(*) FILTER (WHERE {_OWNER} = ?) FROM jobs WHERE state = 'queued'"


def _who(owner: Mapping[str, str | None]) -> tuple[str]:
    return (owner.get("org_id") or owner.get("user_id") or owner.get("token_id") or "",)


def _check_room(waiting: tuple[int, int], owner: Mapping[str, str | None]) -> None:
    """Refuse a further job if too many wait: of all, or of its owner."""
    everyone, own = waiting
    if everyone >= MOST_QUEUED:
        raise TransientError("queue-full", f"{everyone} jobs wait; try again when they are done", retry_after=10)
    if own >= MOST_QUEUED_OF_ONE and _who(owner) != ("",):
        raise TransientError("queue-full", f"{own} jobs of yours wait; try again when they are done", retry_after=10)


def _together(rows: Sequence[tuple[int, Kind, int, str]]) -> list[int]:
    """Return the numbers of the first of some waiting jobs and of those to be carried out with it."""
    if not rows:
        return []
    first, kind, attempts, _ = rows[0]
    if kind not in TOGETHER or attempts >= _ALONE_FROM:
        return [first]
    possible: dict[str, list[int]] = {}
    for number, other, tried, owner in rows:
        if other in ("clear", "restore", "reinstate"):
            break
        if other in TOGETHER and tried < _ALONE_FROM:
            possible.setdefault(owner, []).append(number)
    most = MOST_TOGETHER if len(possible) == 1 else MOST_TOGETHER_OF_ONE
    turns = zip_longest(*(numbers[:most] for numbers in possible.values()))
    return sorted(list(chain.from_iterable(filter(None, turn) for turn in turns))[:MOST_TOGETHER])


def _checked(kind: Kind, payload: Mapping[str, Any]) -> str:
    if kind not in KINDS:
        raise SettingsError(f"{kind} is no kind of job; there are {', '.join(KINDS)}")
    for target in payload.get("targets") or ():
        if masked(target) != target:
            raise SettingsError(
                f"{masked(target)} contains a password or token; a [[source]] table names the place, and the "
                "environment or its options the credentials"
            )
    text = json_of(payload)
    if len(text) > MOST_PAYLOAD:
        raise SettingsError(f"the job is described in {len(text)} characters, more than {MOST_PAYLOAD}; divide it")
    return text


def _owner_column(name: str) -> str:
    if name not in OWNER:
        raise SettingsError(f"{name} says nothing about the owner of a job; {', '.join(OWNER)} do")
    return name
