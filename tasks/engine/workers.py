"""A pool of extraction processes, each of which can be killed without harm to the run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from parquetry.errors import BrokenDocument, Verdict
from parquetry.model import Chunk, ChunkSize, Extraction, Heading, Part, RawDocument
from parquetry.process_folder import process_folder
from parquetry.tasks.engine.fork_server import (
    READING,
    keep_fork_server,
    reading_context,
    release_fork_server,
)
from parquetry.tasks.engine.pooled_process import ProcessDied
from parquetry.tasks.engine.process_pool import ProcessPool
from parquetry.tasks.engine.time_limit import TimeLimit, time_limit, time_limit_of

if TYPE_CHECKING:
    from parquetry.sessions.model import Transcript
    from parquetry.sessions.transcripts.base import Unread
    from parquetry.settings.base import Section
    from parquetry.settings.embedding import ChunkingSettings
    from parquetry.settings.extraction import ExtractionSettings

Result = TypeVar("Result")
_TASKS_PER_WORKER = 2000
"""tasks after which a worker is replaced, so that memory leaks of libraries stay small"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An extracted and chunked document."""

    extraction: Extraction
    chunks: tuple[Chunk, ...]
    seconds: float = 0.0
    """seconds that both took; 0 if that is not known"""


@dataclass(frozen=True, slots=True)
class FileOfSessions:
    """The content of a file of chat sessions."""

    found: tuple[Transcript | Unread, ...]
    """sessions and unreadable parts, in their order"""
    verdict: Verdict | None
    """reason why nothing follows; None if the file was read to its end"""


class WorkerPool:
    """Read untrusted files in separate processes with a time and a memory limit for each.

    A document that hangs or exhausts memory costs only its process, which is replaced, and fails alone.

    Args:
        extraction: limits and extraction settings.
        chunking: settings of the chunker.
        tokenizer: serialised tokenizer for chunk sizes in tokens; None to count characters.
    """

    def __init__(self, extraction: ExtractionSettings, chunking: ChunkingSettings, tokenizer: str | None) -> None:
        self._settings = extraction
        self._limits: WeakKeyDictionary[Future[Any], TimeLimit] = WeakKeyDictionary()
        self._memory_mb = extraction.memory_mb
        handle, turns = tempfile.mkstemp(prefix="ocr-", dir=process_folder())
        os.close(handle)
        self._turns = Path(turns)
        keep_fork_server(self)
        self._pool = ProcessPool(
            processes=extraction.workers or os.cpu_count() or 1,
            tasks_each=_TASKS_PER_WORKER,
            context=reading_context(READING),
            start=_start,
            arguments=(_plain(extraction), _plain(chunking), tokenizer, self._turns),
        )

    def prepare(self, document: RawDocument, chunk_size: ChunkSize | None = None) -> Future[Prepared]:
        """Extract and chunk a document; the future raises what `extract` raises, or BrokenDocument for a limit."""
        return self._schedule(_prepare, document, chunk_size, limit=time_limit_of(document, self._settings))

    def chunk(
        self, text: str, parts: Sequence[Part], headings: Sequence[Heading], chunk_size: ChunkSize | None = None
    ) -> Future[tuple[Chunk, ...]]:
        """Chunk a text again; the future raises BrokenDocument for a limit."""
        return self._schedule(_chunk, text, parts, headings, chunk_size, limit=time_limit(len(text), self._settings))

    def sessions(self, document: RawDocument) -> Future[FileOfSessions]:
        """Read a file of chat sessions; the future raises what stops the run, or BrokenDocument for a limit."""
        return self._schedule(_sessions, document, limit=time_limit(len(document.content), self._settings))

    def result(self, future: Future[Result]) -> Result:
        """Wait for a future of this pool, and translate the end of a killed process.

        Raises:
            BrokenDocument: `timeout`, `memory` or `crashed`; errors of the extractor are raised unchanged.
        """
        try:
            return future.result()
        except TimeoutError as error:
            raise BrokenDocument("timeout", str(self._limits[future])) from error
        except MemoryError as error:
            detail = f"needed more than {self._memory_mb} MiB (extraction.memory_mb)"
            raise BrokenDocument("memory", detail) from error
        except ProcessDied as error:
            raise BrokenDocument("crashed", f"its extraction process {error}") from error

    def _schedule(
        self, function: Callable[..., Result], *arguments: Any, limit: TimeLimit | None = None
    ) -> Future[Result]:
        limit = limit or TimeLimit(self._settings.timeout_seconds)
        future = self._pool.submit(function, *arguments, seconds=limit.seconds)
        self._limits[future] = limit
        return future

    def close(self) -> None:
        """Kill all processes immediately."""
        self._pool.close()
        release_fork_server(self)
        self._turns.unlink(missing_ok=True)


def _plain(section: Section) -> SimpleNamespace:
    """Return the values of a section as they are sent to a process that reads documents.

    It reads them as attributes, and is ready a fifth earlier without pydantic, which only passwords need.
    """
    return SimpleNamespace(**{name: getattr(section, name) for name in type(section).model_fields})


# The processes get these functions by name, so that what reads documents is imported there alone.


def _start(extraction: ExtractionSettings, chunking: ChunkingSettings, tokenizer: str | None, turns: Path) -> None:
    from parquetry.tasks.engine import reading_process

    reading_process.start(extraction, chunking, tokenizer, turns)


def _prepare(document: RawDocument, chunk_size: ChunkSize | None) -> Prepared:
    from parquetry.tasks.engine import reading_process

    return reading_process.prepare(document, chunk_size)


def _chunk(
    text: str, parts: Sequence[Part], headings: Sequence[Heading], chunk_size: ChunkSize | None
) -> tuple[Chunk, ...]:
    from parquetry.tasks.engine import reading_process

    return reading_process.chunk(text, parts, headings, chunk_size)


def _sessions(document: RawDocument) -> FileOfSessions:
    from parquetry.tasks.engine import reading_process

    return reading_process.sessions(document)
