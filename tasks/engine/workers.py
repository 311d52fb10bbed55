"""A pool of extraction processes, each of which can be killed without harm to the run."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import wait
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from pebble import CONSTS, ProcessExpired, ProcessPool

from parquetry import freed_memory
from parquetry.chunking.chunker import Chunker
from parquetry.chunking.fingerprint import sized
from parquetry.errors import BrokenDocument, Verdict, classify
from parquetry.extract import ocr, registry
from parquetry.garbage import collect_seldom
from parquetry.model import Chunk, ChunkSize, Extraction, Heading, Part, RawDocument
from parquetry.process_folder import process_folder
from parquetry.tasks.engine.fork_server import (
    READING,
    clear_environment,
    keep_fork_server,
    reading_context,
    release_fork_server,
)
from parquetry.tasks.engine.time_limit import TimeLimit, time_limit, time_limit_of

if TYPE_CHECKING:
    from parquetry.sessions.model import Transcript
    from parquetry.sessions.transcripts.base import Unread
    from parquetry.settings.base import Section
    from parquetry.settings.embedding import ChunkingSettings
    from parquetry.settings.extraction import ExtractionSettings

Result = TypeVar("Result")
_MIB = 1024 * 1024
CONSTS.sleep_unit = 0.02
"""seconds between two looks of a pool at its processes, and so those that closing it takes"""
_MANY_BYTES = 1_000_000
"""bytes of documents after which a worker gives memory back, which takes a hundredth of a second"""
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
            max_workers=extraction.workers or os.cpu_count() or 1,
            max_tasks=_TASKS_PER_WORKER,
            context=reading_context(READING),
            initializer=_start,
            initargs=(_plain(extraction), _plain(chunking), tokenizer, self._turns),
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
        except ProcessExpired as error:
            raise BrokenDocument("crashed", f"its extraction process died (exit code {error.exitcode})") from error

    def _schedule(
        self, function: Callable[..., Result], *arguments: Any, limit: TimeLimit | None = None
    ) -> Future[Result]:
        limit = limit or TimeLimit(self._settings.timeout_seconds)
        future: Future[Result] = self._pool.schedule(function, args=arguments, timeout=limit.seconds)
        self._limits[future] = limit
        return future

    def close(self) -> None:
        """Kill all processes immediately."""
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()
        release_fork_server(self)
        self._turns.unlink(missing_ok=True)


def _plain(section: Section) -> SimpleNamespace:
    """Return the values of a section as they are sent to a process that reads documents.

    It reads them as attributes, and is ready a fifth earlier without pydantic, which only passwords need.
    """
    return SimpleNamespace(**{name: getattr(section, name) for name in type(section).model_fields})


_extraction: ExtractionSettings
_chunking: ChunkingSettings
_tokenizer: str | None


def _start(extraction: ExtractionSettings, chunking: ChunkingSettings, tokenizer: str | None, turns: Path) -> None:
    global _extraction, _chunking, _tokenizer
    clear_environment()
    _silence()
    _limit_memory(extraction.memory_mb * _MIB)
    _die_with_parent()
    freed_memory.keep_little()
    gc.freeze()
    collect_seldom()
    ocr.take_turns(turns)
    _extraction = extraction
    _chunking, _tokenizer = chunking, tokenizer
    _chunker.cache_clear()


@lru_cache(maxsize=16)
def _chunker(chunk_size: ChunkSize | None) -> Chunker:
    settings = _chunking
    if chunk_size is not None:
        from parquetry.settings.embedding import ChunkingSettings

        of_all = ChunkingSettings.model_construct(**vars(_chunking))
        settings = sized(of_all, chunk_size, in_tokens=_tokenizer is not None)
    return Chunker(settings, _tokenizer)


def _prepare(document: RawDocument, chunk_size: ChunkSize | None) -> Prepared:
    started = perf_counter()
    try:
        extraction = registry.extract(document, _extraction)
        chunks = _chunk(extraction.text, extraction.parts, extraction.headings, chunk_size)
        return Prepared(extraction, chunks, perf_counter() - started)
    finally:
        _give_back_at_times(len(document.content))


_read_bytes = 0
"""bytes of documents that this process has read since it gave memory back"""


def _give_back_at_times(more: int) -> None:
    global _read_bytes
    _read_bytes += more
    if _read_bytes >= _MANY_BYTES:
        _read_bytes = 0
        freed_memory.give_back()


def _chunk(
    text: str, parts: Sequence[Part], headings: Sequence[Heading], chunk_size: ChunkSize | None
) -> tuple[Chunk, ...]:
    return _chunker(chunk_size).split(text, parts, headings)


def _sessions(document: RawDocument) -> FileOfSessions:
    # Of all runs, few read sessions, and every run waits for this module.
    from parquetry.sessions.transcripts.registry import read_transcripts

    found: list[Transcript | Unread] = []
    try:
        found.extend(read_transcripts(document))
    except MemoryError:
        raise
    except Exception as error:
        verdict = classify(error)
        if verdict.fate == "stop":
            raise
        return FileOfSessions(tuple(found), verdict)
    return FileOfSessions(tuple(found), None)


def _silence() -> None:
    """Silence native libraries, which would write to the run's terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _limit_memory(limit: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _die_with_parent() -> None:
    """End this process when the run's process is gone, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        # The thread below cannot run while native code holds the interpreter lock: the kernel does not depend on it.
        import fcntl

        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, fcntl.fcntl(parent.sentinel, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
