"""One run: what it is about, and the resources that its batches share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from knowledge.errors import ParquetryError
from knowledge.rows import Stamp
from knowledge.settings import Settings
from knowledge.sources.base import Source
from knowledge.sources.registry import Scope
from storage.current import Stored
from storage.lake import Lake, Snapshot
from tasks.describe import Describer
from tasks.fetching import Fetching
from tasks.models import Model
from tasks.retries import Retries
from tasks.vectors import RunVectors
from tasks.workers import WorkerPool


class Cancelled(ParquetryError):
    """The run was cancelled; nothing was published."""


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
    models: Mapping[str, Model]
    """namespace -> model of its documents"""
    scopes: Mapping[tuple[str, str], Scope] = field(default_factory=dict)
    """(namespace, name) -> what the settings say of a source; one without is on this machine"""
    reuse_vectors: bool = True
    """take vectors of earlier runs by text hash"""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """set to stop between documents"""
    retries: Retries = field(init=False)
    fetching: Fetching = field(init=False)
    slots: threading.Semaphore = field(init=False)
    """for embedding and writing: batches at a time, from however many services they come"""
    _pools: dict[str | None, WorkerPool] = field(default_factory=dict)
    """serialised tokenizer -> processes that count its tokens; None where characters are counted"""
    _stored: Stored | None = None
    _vectors: dict[str, RunVectors] = field(default_factory=dict)
    """by id of the model"""
    _describer: Describer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.retries = Retries(self.settings.refresh.attempts, self.pause)
        self.fetching = Fetching(self.sources, self.scopes, self.retries, self.pause)
        self.slots = threading.Semaphore(self.settings.refresh.workers)

    def pool_of(self, namespace: str) -> WorkerPool:
        """The extraction processes for a namespace's documents, started when first needed.

        Namespaces share them unless chunks are measured in tokens of different models.
        """
        by_tokens = self.settings.chunking.unit == "tokens"
        tokenizer = self.models[namespace].open().tokenizer_json if by_tokens else None
        with self._lock:
            if tokenizer not in self._pools:
                self._pools[tokenizer] = WorkerPool(self.settings.extraction, self.settings.chunking, tokenizer)
            return self._pools[tokenizer]

    @property
    def stored(self) -> Stored:
        """What earlier runs stored."""
        with self._lock:
            if self._stored is None:
                self._stored = Stored(self.base, self.lake.orphans(self.base))
            return self._stored

    def vectors_of(self, model: Model) -> RunVectors:
        """Vectors of a model that exist or are being computed."""
        stored = self.stored
        with self._lock:
            if model.id not in self._vectors:
                self._vectors[model.id] = RunVectors(stored if self.reuse_vectors else Stored(), model.open())
            return self._vectors[model.id]

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
        self.fetching.close()
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            if self._stored is not None:
                self._stored.close()
            if self._describer is not None:
                self._describer.close()
