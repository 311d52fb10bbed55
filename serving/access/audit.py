"""Audit events of the service: who asked, wrote or was refused, as lines of JSON in the state folder.

The lines are the table, too: `read_json` of DuckDB and `parquetry token audit` read them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from filelock import FileLock, Timeout

from parquetry.masking import excerpt
from parquetry.printing import json_text, tell
from parquetry.serving.access.principals import Principal
from parquetry.serving.state.folder import PRIVATE_FILE

Event = Literal[
    "knowledge.retrieve",
    "knowledge.query",
    "knowledge.ingest",
    "knowledge.delete",
    "request.relayed",
    "run.asked",
    "run.cancelled",
    "entries.decided",
    "token.created",
    "token.revoked",
    "access.refused",
]
EVENTS: tuple[Event, ...] = get_args(Event)
FILE = "audit.jsonl"
LOCK = "audit.lock"
"""held by the process that puts files aside"""
MOST_BYTES = 32 * 1024 * 1024
"""bytes of a file from which on it is put aside"""
KEPT_FILES = 16
"""maximum number of files that were put aside; the oldest is deleted"""
REFUSED_PER_MINUTE = 60
"""maximum number of refusals that one process records in a minute: a flood of them must not push out other events"""
_LONGEST = 2000
"""characters of a text or reason"""
_SCORE_DIGITS, _TIME_DIGITS = 6, 3


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event. Fields that do not apply are None."""

    event: Event
    token_id: str | None = None
    """id of the token, as in `parquetry token list`; None for callers without one"""
    user_id: str | None = None
    org_id: str | None = None
    operator: bool = False
    """True for the local operator"""
    address: str | None = None
    """address of the caller"""
    namespace: str | None = None
    queries: int | None = None
    """number of questions"""
    chunks: int | None = None
    """number of chunks returned, written or removed"""
    documents: int | None = None
    """number of documents returned, written or removed"""
    top_score: float | None = None
    """best relevance, 0 to 1"""
    milliseconds: float | None = None
    """time until the answer"""
    status: int | None = None
    """HTTP status of the answer"""
    reason: str | None = None
    """short code of a refusal or failure, in kebab-case"""
    target: str | None = None
    """id of the token that was created or revoked; route of a refused request; method and path of one passed on; kind
    and id of a job"""
    upstream: str | None = None
    """address of the model service that a request was passed on to"""
    text: str | None = None
    """the question; only kept with `serve.audit_text`"""

    def by(self, principal: Principal) -> AuditEvent:
        """Return the event with its caller."""
        return replace(
            self,
            token_id=principal.token_id,
            user_id=principal.user_id,
            org_id=principal.org_id,
            operator=principal.operator,
        )


_MEMBERS = tuple(field.name for field in fields(AuditEvent))
COLUMNS = ("time", *_MEMBERS, "suppressed")
"""members of a line, in order"""


class AuditLog:
    """Writer of audit events. Safe to use from several threads and processes.

    A failure never fails the request: the first one is reported on stderr, and all are counted in `lost`.

    Args:
        state: state folder of the service.
        keep_text: keep the text of questions.
        now: clock, in seconds since the epoch.
        most_bytes: size from which on a file is put aside.
    """

    def __init__(
        self,
        state: Path,
        *,
        keep_text: bool = False,
        now: Callable[[], float] = time.time,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._file = state / FILE
        self._keep_text = keep_text
        self._now = now
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._minute = 0
        self._refused = 0
        self._suppressed = 0
        self.lost = 0
        """number of events that could not be written"""

    def write(self, event: AuditEvent) -> None:
        """Append one event."""
        at = self._now()
        with self._lock:
            if event.event == "access.refused" and not self._admits(at):
                return
            suppressed, self._suppressed = self._suppressed, 0
        line = json_text({"time": _iso(at), **self._members(event), "suppressed": suppressed}) + "\n"
        try:
            self._append(line.encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._complain(error)

    def _admits(self, at: float) -> bool:
        minute = int(at // 60)
        if minute != self._minute:
            self._minute, self._refused = minute, 0
        self._refused += 1
        if self._refused > REFUSED_PER_MINUTE:
            self._suppressed += 1
            return False
        return True

    def _members(self, event: AuditEvent) -> dict[str, Any]:
        members = {name: getattr(event, name) for name in _MEMBERS}
        if not self._keep_text:
            members["text"] = None
        for name in ("text", "reason", "target", "upstream"):
            if members[name] is not None:
                members[name] = excerpt(members[name], _LONGEST)
        for name, digits in (("top_score", _SCORE_DIGITS), ("milliseconds", _TIME_DIGITS)):
            if members[name] is not None:
                members[name] = round(members[name], digits)
        return members

    def _append(self, line: bytes) -> None:
        # Opened for every event, so that the file can be put aside; one write is one line across processes, too.
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
        try:
            written = os.write(descriptor, line)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if written < len(line):
            raise OSError("only a part of an event was written; is the disk full?")
        if size >= self._most_bytes:
            self._put_aside()

    def _put_aside(self) -> None:
        try:
            with FileLock(self._file.with_name(LOCK), timeout=0, mode=PRIVATE_FILE):
                # Another process may have done it since.
                if self._file.stat().st_size >= self._most_bytes:
                    put_aside(self._file.parent, self._now())
                for each in former_files(self._file.parent)[:-KEPT_FILES]:
                    each.unlink(missing_ok=True)
        except (Timeout, FileNotFoundError):
            return
        except PermissionError:
            # Windows does not rename a file that another process has open; the next event tries again.
            if sys.platform != "win32":
                raise

    def _complain(self, error: OSError) -> None:
        with self._lock:
            self.lost += 1
            first = self.lost == 1
        if first:
            reason = error.strerror or str(error)
            tell(f"parquetry: audit events are not recorded: {self._file}: {reason}", err=True)


def put_aside(state: Path, at: float) -> None:
    """Rename the file with the newest events, so that the next event begins another one. The caller holds `LOCK`.

    Args:
        state: state folder.
        at: time for the new name, in seconds since the epoch.
    """
    (state / FILE).rename(state / f"audit-{datetime.fromtimestamp(at, UTC):%Y%m%dT%H%M%S%f}.jsonl")


def former_files(state: Path) -> list[Path]:
    """Return the files that were put aside, oldest first."""
    return sorted(state.glob("audit-*.jsonl"))


def audit_files(state: Path) -> list[Path]:
    """Return the files with audit events, oldest first."""
    newest = state / FILE
    return [*former_files(state), *([newest] if newest.exists() else [])]


def audit_events(state: Path) -> Iterator[dict[str, Any]]:
    """Return all audit events that are kept, oldest first; each has the members `COLUMNS`.

    A line that a full disk cut off is left out.
    """
    for file in audit_files(state):
        try:
            lines = file.open(encoding="utf-8")
        except FileNotFoundError:
            # Put aside, or deleted as the oldest, since the folder was listed.
            continue
        with lines:
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    yield {name: event.get(name) for name in COLUMNS}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
