"""Read files of chat sessions and find new content in them. Contains the failure of every single file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Literal

from parquetry import ids
from parquetry.errors import SkippedDocument, Verdict, classify
from parquetry.model import DocumentRow, RawDocument
from parquetry.sessions.ledger.session_rows import (
    FileKey,
    SessionFile,
    mark_of,
    quarantined_of,
    session_id,
    session_uri,
)
from parquetry.sessions.model import SessionRef, Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.windows import Mark, Stretch, first_new, processed_mark
from parquetry.tasks.documents.fetching import AT_A_TIME, Fetching
from parquetry.tasks.engine.workers import FileOfSessions, WorkerPool
from parquetry.tasks.sessions.spool import Spooled

_LOOK_SECONDS = 0.5
"""seconds between two checks for cancellation"""


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session to learn from."""

    file: SessionFile
    known: DocumentRow | None
    """current row of the session; None if it is new"""
    ref: SessionRef
    name: str
    title: str | None
    first_new: int
    """0-based index of the first message to learn from"""
    mark: Mark
    """mark of all its messages"""
    at: datetime
    """UTC time of its last message"""
    kept: Spooled | None
    """location in the spool; None in a plan"""
    retried: tuple[Stretch, ...] = ()
    """messages that are read again because they were quarantined"""
    still_quarantined: tuple[Stretch, ...] = ()
    """messages that were quarantined and are not read again"""
    timed: bool = True
    """True if `at` is given by the session rather than by its file"""

    @property
    def content(self) -> Hashable:
        """Key shared with copies of the session in other files of its source."""
        file = self.file
        return (file.namespace, file.source, file.owner, self.mark, self.at if self.timed else None)

    def is_in(self, row: DocumentRow) -> bool:
        """True if a completely read session is a copy of this one, given the same owner and prompt."""
        where = (row.namespace, row.source, row.status) == (self.file.namespace, self.file.source, "indexed")
        same = mark_of(row) == self.mark and (not self.timed or row.modified_at == self.at)
        return where and same and row.document_id != self.ref.session_id

    @property
    def change(self) -> Literal["new", "grown", "retried"]:
        """Reason for learning: the session is new, has grown, or only quarantined messages are read again."""
        if not self.first_new:
            return "new"
        return "grown" if self.first_new < self.mark.messages else "retried"


@dataclass
class ReadFile:
    """The content of a file."""

    file: SessionFile
    content_hash: str = ""
    sessions: int = 0
    found: list[FoundSession] = field(default_factory=list)
    failed: list[DocumentRow] = field(default_factory=list)
    """rows of sessions that failed before and are not retried"""
    unread: list[str] = field(default_factory=list)
    """lost parts, one sentence each"""
    refused: tuple[str, Verdict] | None = None
    """stage and verdict, if nothing could be read"""


@dataclass(frozen=True, slots=True)
class SessionReader:
    """Read files of sessions.

    `keep` writes sessions to be worked on to the spool; None to only look at them.
    """

    fetching: Fetching
    pool: WorkerPool
    known: Mapping[str, DocumentRow]
    """current rows of sessions by id"""
    fingerprint: Callable[[SessionFile], str]
    max_bytes: int
    keep: Callable[[Transcript], Spooled] | None
    look: Callable[[FoundSession, Transcript], None] | None
    """called with every session to learn from"""
    check_cancelled: Callable[[], None]
    retried_files: Collection[FileKey] = ()
    """files whose quarantined messages are read again"""
    _looked_at: set[Hashable] = field(default_factory=set)
    _by_hash: dict[str | None, list[DocumentRow]] = field(default_factory=dict)
    """known sessions by the hash of their messages"""

    def __post_init__(self) -> None:
        for row in sorted(self.known.values(), key=attrgetter("path")):
            self._by_hash.setdefault(row.content_hash, []).append(row)

    def read(self, files: Sequence[SessionFile]) -> Iterator[ReadFile]:
        """Read files, those of services concurrently, and yield the content of each, in any order.

        Raises:
            ParquetryError: an error that concerns the whole run.
        """
        waiting = iter(files)
        fetched: dict[Future[None], tuple[SessionFile, list[bytes | Verdict]]] = {}
        opened: dict[Future[FileOfSessions], ReadFile] = {}
        try:
            while True:
                for file in islice(waiting, AT_A_TIME - len(fetched) - len(opened)):
                    got: list[bytes | Verdict] = []
                    future = self.fetching.start(file.namespace, file.source, partial(self._fetch, file, got))
                    fetched[future] = (file, got)
                    if future.done():
                        break
                if not fetched and not opened:
                    return
                every: list[Future[Any]] = [*fetched, *opened]
                done = wait(every, _LOOK_SECONDS, FIRST_COMPLETED).done
                self.check_cancelled()
                for future in fetched.keys() & done:
                    future.result()
                    file, got = fetched.pop(future)
                    read = ReadFile(file)
                    if (content := self._opened(read, got.pop())) is None:
                        yield read
                    else:
                        opened[self._parsing(file, content)] = read
                for parsed in opened.keys() & done:
                    yield self._sorted(opened.pop(parsed), parsed)
        finally:
            for fetching in fetched:
                fetching.cancel()
            for parsing in opened:
                parsing.cancel()

    def _fetch(self, file: SessionFile, got: list[bytes | Verdict]) -> None:
        self.check_cancelled()
        item = file.item
        if item.size > self.max_bytes:
            detail = f"has {item.size} bytes, more than {self.max_bytes} (extraction.max_bytes)"
            got.append(classify(SkippedDocument("too-large", detail)))
            return
        self.fetching.make_room(item.size)
        try:
            got.append(self.fetching.fetch(file.namespace, file.source, item)[1])
        except Exception as error:  # noqa: BLE001 - any error fails this file or stops the run
            self.fetching.give_back(item.size)
            got.append(_contained(error))

    def _opened(self, read: ReadFile, content: bytes | Verdict) -> bytes | None:
        """Return the content to be read; None if there is nothing to read."""
        file = read.file
        if isinstance(content, Verdict):
            read.refused = ("fetch", content)
            return None
        read.content_hash = ids.content_hash(content)
        if not self._is_known(file, read.content_hash):
            return content
        self.fetching.give_back(file.item.size)
        read.sessions = int(file.known.metadata.get("sessions", 0)) if file.known else 0
        return None

    def _parsing(self, file: SessionFile, content: bytes) -> Future[FileOfSessions]:
        parsing = self.pool.sessions(RawDocument(content, file.item.path.rpartition("/")[2]))
        parsing.add_done_callback(lambda _: self.fetching.give_back(file.item.size))
        return parsing

    def _sorted(self, read: ReadFile, parsed: Future[FileOfSessions]) -> ReadFile:
        file = read.file
        try:
            held = self.pool.result(parsed)
            for found in held.found:
                self.check_cancelled()
                if isinstance(found, Unread):
                    read.unread.append(f"{file.item.uri}: {found.place}: {found.detail}")
                    continue
                read.sessions += 1
                self._sort(found, read)
            # The sessions found before the error are processed nevertheless.
            read.refused = None if held.verdict is None else ("extract", held.verdict)
        except Exception as error:  # noqa: BLE001 - any error fails this file or stops the run
            read.refused = ("extract", _contained(error))
        return read

    def _is_known(self, file: SessionFile, content_hash: str) -> bool:
        """True if a file that looks changed is unchanged."""
        known = file.known
        if known is None or known.status != "indexed" or file.key in self.retried_files:
            return False
        return (known.content_hash, known.fingerprint) == (content_hash, self.fingerprint(file))

    def _sort(self, transcript: Transcript, read: ReadFile) -> None:
        """Compare a session with its known state, and add it to the file's results if it has something new."""
        file = read.file
        item, fingerprint = file.item, self.fingerprint(file)
        identity = session_id(file.namespace, file.source, item.path, transcript.name)
        known = self.known.get(identity)
        mark = processed_mark(transcript.messages)
        before = None
        if known is not None and known.fingerprint == fingerprint:
            if known.status == "failed" and not known.transient and known.content_hash == mark.hash:
                read.failed.append(known)
                return
            before = mark_of(known)
        new = first_new(transcript.messages, before)
        quarantined = quarantined_of(known) if known is not None and new else ()
        # A session that failed while it was read again is read to its end.
        retry = file.key in self.retried_files or (known is not None and known.status == "failed")
        retried, left = (quarantined, ()) if retry else ((), quarantined)
        if new == len(transcript.messages) and not retried:
            return
        sent_at = next((message.at for message in reversed(transcript.messages) if message.at), None)
        last = sent_at or item.modified_at
        ref = SessionRef(identity, session_uri(item.uri, transcript.name), file.owner)
        kept = self.keep(transcript) if self.keep else None
        name, title = transcript.name, transcript.title
        found = FoundSession(file, known, ref, name, title, new, mark, last, kept, retried, left, sent_at is not None)
        read.found.append(found)
        if self.look and found.content not in self._looked_at and not self.copied(found):
            self._looked_at.add(found.content)
            self.look(found, transcript)

    def copied(self, found: FoundSession) -> DocumentRow | None:
        """Return the row of a session with the same content that was read from another file; None if there is none."""
        if found.retried:
            return None
        fingerprint = self.fingerprint(found.file)
        rows = self._by_hash.get(found.mark.hash, ())
        return next((row for row in rows if row.fingerprint == fingerprint and found.is_in(row)), None)


def _contained(error: Exception) -> Verdict:
    """Return the verdict of a failure for its file; raise what concerns the whole run."""
    verdict = classify(error)
    if verdict.fate == "stop":
        raise error
    return verdict
