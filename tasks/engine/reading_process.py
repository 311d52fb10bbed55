"""The work of an extraction process, under the limits of the pool that started it.

The program that owns the pool does not import this, nor the extractors.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from multiprocessing.connection import wait
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from parquetry import freed_memory
from parquetry.chunking.chunker import Chunker
from parquetry.chunking.fingerprint import sized
from parquetry.errors import classify
from parquetry.extract import ocr, registry
from parquetry.garbage import collect_seldom
from parquetry.model import Chunk, ChunkSize, Heading, Part, RawDocument
from parquetry.tasks.engine.fork_server import clear_environment
from parquetry.tasks.engine.workers import FileOfSessions, Prepared

if TYPE_CHECKING:
    from parquetry.sessions.model import Transcript
    from parquetry.sessions.transcripts.base import Unread
    from parquetry.settings.embedding import ChunkingSettings
    from parquetry.settings.extraction import ExtractionSettings

_MIB = 1024 * 1024
_MANY_BYTES = 1_000_000
"""bytes of documents after which a worker gives memory back, which takes a hundredth of a second"""
_MANY_SEARCHES = 4
"""searches of new objects for garbage after which a worker searches all: some 200,000 objects"""

_extraction: ExtractionSettings
_chunking: ChunkingSettings
_tokenizer: str | None


def start(extraction: ExtractionSettings, chunking: ChunkingSettings, tokenizer: str | None, turns: Path) -> None:
    """Prepare this process: only what reading needs, within limits, for as long as the program lives."""
    global _extraction, _chunking, _tokenizer, _searches_before
    clear_environment()
    _silence()
    _limit_memory(extraction.memory_mb * _MIB)
    _die_with_parent()
    freed_memory.keep_little()
    gc.freeze()
    collect_seldom()
    _searches_before = _searches()
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


def prepare(document: RawDocument, chunk_size: ChunkSize | None) -> Prepared:
    """Extract and chunk a document."""
    _free_what_others_left()
    started = perf_counter()
    try:
        extraction = registry.extract(document, _extraction)
        chunks = chunk(extraction.text, extraction.parts, extraction.headings, chunk_size)
        return Prepared(extraction, chunks, perf_counter() - started)
    finally:
        _give_back_at_times(len(document.content))


_searches_before = 0
"""searches of new objects for garbage up to the last one of all objects"""


def _free_what_others_left() -> None:
    """Free objects of earlier documents that refer to one another: they count towards the memory of the next one."""
    global _searches_before
    if _searches() - _searches_before >= _MANY_SEARCHES:
        _searches_before = _searches()
        gc.collect()
        freed_memory.give_back()


def _searches() -> int:
    """Return how often Python searched new objects for garbage: once for each 50,000 that were not freed at once."""
    searches: int = gc.get_stats()[0]["collections"]
    return searches


_read_bytes = 0
"""bytes of documents that this process has read since it gave memory back"""


def _give_back_at_times(more: int) -> None:
    global _read_bytes
    _read_bytes += more
    if _read_bytes >= _MANY_BYTES:
        _read_bytes = 0
        freed_memory.give_back()


def chunk(
    text: str, parts: Sequence[Part], headings: Sequence[Heading], chunk_size: ChunkSize | None
) -> tuple[Chunk, ...]:
    """Chunk a text."""
    return _chunker(chunk_size).split(text, parts, headings)


def sessions(document: RawDocument) -> FileOfSessions:
    """Read a file of chat sessions."""
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
