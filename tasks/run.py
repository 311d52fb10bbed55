"""One run: what it is about, and the resources that its batches share."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cache, cached_property

from knowledge import chunk
from knowledge.embed.base import Embedder
from knowledge.embed.registry import open_embedder
from knowledge.errors import ParquetryError
from knowledge.extract import registry
from knowledge.fingerprint import Fingerprints
from knowledge.ids import settings_hash
from knowledge.rows import Stamp
from knowledge.settings import Settings
from knowledge.sources.base import Source
from storage.current import Stored
from storage.lake import Lake, Snapshot
from tasks.describe import Describer
from tasks.vectors import RunVectors
from tasks.workers import WorkerPool


class Cancelled(ParquetryError):
    """The run was cancelled; nothing was published."""


def fingerprints_of(settings: Settings, embedder_id: str) -> Fingerprints:
    """The fingerprints that the settings give to documents."""
    tokenizer = embedder_id if settings.chunking.unit == "tokens" else None

    @cache
    def extraction(media_type: str | None) -> str:
        if media_type is None:
            # Never read, because of its size.
            return settings_hash({"max_bytes": settings.extraction.max_bytes})
        return registry.fingerprint(media_type, settings.extraction)

    return Fingerprints(
        extraction=extraction,
        chunking=chunk.fingerprint(settings.chunking, tokenizer),
        embedding=settings_hash({"embedder": embedder_id, "template": settings.embedding.template}),
    )


@dataclass
class Run:
    """A run in progress, shared by the threads that process its batches.

    Use as a context manager: leaving it stops the extraction processes.
    """

    settings: Settings
    stamp: Stamp
    lake: Lake
    base: Snapshot
    """the version that the run started from"""
    sources: dict[tuple[str, str], Source]
    """(namespace, name) -> source"""
    embedder_id: str
    reuse_vectors: bool = True
    """take vectors of earlier runs by text hash"""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """set to stop between documents"""
    _pool: WorkerPool | None = None
    _stored: Stored | None = None
    _vectors: RunVectors | None = None
    _describer: Describer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def fingerprints(self) -> Fingerprints:
        return fingerprints_of(self.settings, self.embedder_id)

    @property
    def embedder(self) -> Embedder:
        """The model, loaded when first needed."""
        return open_embedder(self.settings.corpus.embedder, self.settings.embedding)

    @property
    def pool(self) -> WorkerPool:
        """The extraction processes, started when first needed."""
        with self._lock:
            if self._pool is None:
                by_tokens = self.settings.chunking.unit == "tokens"
                tokenizer = self.embedder.tokenizer_json if by_tokens else None
                self._pool = WorkerPool(self.settings.extraction, self.settings.chunking, tokenizer)
            return self._pool

    @property
    def stored(self) -> Stored:
        """What earlier runs stored."""
        with self._lock:
            if self._stored is None:
                self._stored = Stored(self.base, self.lake.orphans(self.base))
            return self._stored

    @property
    def vectors(self) -> RunVectors:
        """Vectors that exist or are being computed."""
        stored = self.stored
        with self._lock:
            if self._vectors is None:
                self._vectors = RunVectors(stored if self.reuse_vectors else Stored(), self.embedder)
            return self._vectors

    @property
    def describer(self) -> Describer | None:
        """Describes images, if the settings ask for it."""
        if not self.settings.extraction.include_image_descriptions:
            return None
        with self._lock:
            if self._describer is None:
                self._describer = Describer(self.settings.llm)
            return self._describer

    def check_cancelled(self) -> None:
        """Raise Cancelled if somebody asked for it."""
        if self.cancelled.is_set():
            raise Cancelled(f"run {self.stamp.run_id} was cancelled; nothing was published")

    def pause(self, seconds: float) -> None:
        """Wait before another try, unless the run is cancelled meanwhile."""
        self.cancelled.wait(seconds)
        self.check_cancelled()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancelled.set()
        with self._lock:
            if self._pool is not None:
                self._pool.close()
            if self._stored is not None:
                self._stored.close()
            if self._describer is not None:
                self._describer.close()
