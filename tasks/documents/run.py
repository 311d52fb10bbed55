"""A run: its scope, and the resources that its batches share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from parquetry.embed.base import Accountable, Embedder
from parquetry.errors import ParquetryError, ServiceRefused
from parquetry.llm.spending import Ledger
from parquetry.planning.rows import RunStamp
from parquetry.settings.sections import Settings
from parquetry.sources.base import Source
from parquetry.sources.registry import Scope
from parquetry.storage.lake.current import Stored
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.tasks.documents.describe import Describer
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.reading_progress import ReadingProgress
from parquetry.tasks.documents.vectors import RunVectors
from parquetry.tasks.engine.retries import Retries
from parquetry.tasks.engine.workers import WorkerPool

BUDGET_KEY = "refresh.budget_usd"
"""key in the settings"""


class Cancelled(ParquetryError):
    """The run was cancelled; nothing was published."""


@dataclass
class Run:
    """A run in progress, shared by the threads that process its batches.

    Use as a context manager: leaving it stops the extraction processes.
    """

    settings: Settings
    stamp: RunStamp
    lake: Lake
    base: Snapshot
    """version that the run started from"""
    sources: dict[tuple[str, str], Source]
    """(namespace, name) -> source"""
    models: Mapping[str, Model]
    """namespace -> model of its documents"""
    scopes: Mapping[tuple[str, str], Scope] = field(default_factory=dict)
    """(namespace, name) -> settings of a source; a source without an entry is on this machine"""
    reuse_vectors: bool = True
    """True to reuse vectors of earlier runs by text hash"""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """set to stop between documents"""
    ledger: Ledger = field(init=False)
    """ledger of the costs of services"""
    retries: Retries = field(init=False)
    reading: ReadingProgress = field(default_factory=ReadingProgress)
    fetching: Fetching = field(init=False)
    slots: threading.Semaphore = field(init=False)
    """permits for embedding and writing: concurrent batches, however many services they come from"""
    _pools: dict[str | None, WorkerPool] = field(default_factory=dict)
    """serialised tokenizer -> processes that count its tokens; None where characters are counted"""
    _stored: Stored | None = None
    _vectors: dict[str, RunVectors] = field(default_factory=dict)
    """vectors by id of the model"""
    _describer: Describer | None = None
    _turned_away: dict[str, ServiceRefused] = field(default_factory=dict)
    """refusals by id of the model"""
    _unaffordable: set[str] = field(default_factory=set)
    """ids of models whose further use exceeds the budget"""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.settings.refresh.budget_usd, BUDGET_KEY)
        self.retries = Retries(self.settings.refresh.attempts, self.pause)
        self.fetching = Fetching(self.sources, self.scopes, self.retries, self.pause, self.reading.waits)
        self.slots = threading.Semaphore(self.settings.refresh.workers)

    def pool_of(self, namespace: str) -> WorkerPool:
        """Return the extraction processes for a namespace's documents, started on first use.

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
        """The texts and vectors that earlier runs stored."""
        with self._lock:
            if self._stored is None:
                self._stored = Stored(self.base, self.lake.orphans(self.base), self._newest)
            return self._stored

    def _newest(self) -> tuple[Snapshot, tuple[str, ...]]:
        newest = self.lake.snapshot()
        return newest, self.lake.orphans(newest)

    def vectors_of(self, model: Model) -> RunVectors:
        """Return the vectors of a model that exist or are being computed."""
        stored = self.stored
        with self._lock:
            if model.id not in self._vectors:
                self._vectors[model.id] = RunVectors(
                    stored if self.reuse_vectors else Stored(), accounted(model.open(), self.ledger)
                )
            return self._vectors[model.id]

    def turned_away(self, model: Model, error: ServiceRefused) -> None:
        """Record that the service of a model rejects the account."""
        with self._lock:
            self._turned_away.setdefault(model.id, error)

    def out_of_budget(self, model: Model) -> None:
        """Record that the budget does not allow further embedding with a model."""
        with self._lock:
            self._unaffordable.add(model.id)

    def affords(self, model: Model) -> bool:
        """True if the budget allows further embedding with a model; if not, no document is read for it."""
        with self._lock:
            return model.id not in self._unaffordable

    def check_served(self, model: Model) -> None:
        """Raise ServiceRefused if the service of a model has rejected the account: no document is read then."""
        with self._lock:
            error = self._turned_away.get(model.id)
        if error is not None:
            raise ServiceRefused(str(error))

    @property
    def describer(self) -> Describer | None:
        """The image describer, if the settings enable it."""
        if not self.settings.extraction.include_image_descriptions:
            return None
        with self._lock:
            if self._describer is None:
                self._describer = Describer(self.settings.llm, self.ledger)
            return self._describer

    def check_cancelled(self) -> None:
        """Raise Cancelled if the run was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled(f"run {self.stamp.run_id} was cancelled; nothing was published")

    def pause(self, seconds: float) -> None:
        """Wait before a retry; raise if the run is cancelled meanwhile."""
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


def accounted(embedder: Embedder, ledger: Ledger) -> Embedder:
    """Return the embedder with its requests recorded in a ledger, if they cost money."""
    return embedder.accounted_by(ledger) if isinstance(embedder, Accountable) else embedder
