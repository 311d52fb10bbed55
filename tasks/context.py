"""The context of a run: its settings, corpus, sources and services, shared by the threads that process its batches."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from parquetry import freed_memory
from parquetry.embed.base import Embedder, Gate, Limitable, no_gate
from parquetry.llm.spending import Ledger
from parquetry.planning.rows import RunStamp
from parquetry.planning.slowest import SlowestItems
from parquetry.settings.sections import Settings
from parquetry.sources.base import Source
from parquetry.sources.registry import Scope
from parquetry.storage.files.layout import shard_name
from parquetry.storage.index.known import KnownTables
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.stored import Stored
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.vectors import RunVectors
from parquetry.tasks.engine.base import Cancelled
from parquetry.tasks.engine.retries import Retries
from parquetry.waiting import Waits

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from parquetry.tasks.batches.texts import TextLane


@dataclass
class RunContext:
    """A run in progress.

    Use as a context manager: leaving it stops its threads and processes.
    """

    settings: Settings
    stamp: RunStamp
    lake: Lake
    base: Snapshot
    """version that the run started from"""
    sources: Mapping[tuple[str, str], Source]
    """(namespace, name) -> source"""
    models: Mapping[str, Model]
    """namespace -> model of its documents"""
    scopes: Mapping[tuple[str, str], Scope] = field(default_factory=dict)
    """(namespace, name) -> settings of a source; a source without an entry is on this machine"""
    reuse_vectors: bool = True
    """True to reuse vectors of earlier runs by text hash"""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """set to stop between documents"""
    waits: Waits = field(default_factory=Waits)
    """documents being fetched, by path"""
    slowest: SlowestItems = field(default_factory=SlowestItems)
    """documents or sessions that took longest"""
    trace: Context | None = None
    """context of the span that batches belong to"""
    retries: Retries = field(init=False)
    fetching: Fetching = field(init=False)
    ledger: Ledger = field(init=False)
    """ledger of the costs of services"""
    gate: Gate = no_gate
    """limits on requests to embedding services; set before the first of them"""
    worker: str = ""
    """mark of this process in the names of its shards; empty in the run's own process"""
    text_lanes: dict[str, TextLane] = field(default_factory=dict)
    """lanes for texts that may wait, by id of the model"""
    known: KnownTables = field(init=False)
    """content of the tables that the search index knows"""
    gave_memory_back: bool = False
    """True for a run whose batches needed much memory"""
    _stored: Stored | None = None
    _vectors: dict[str, RunVectors] = field(default_factory=dict)
    """vectors by id of the model"""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.retries = Retries(self.settings.refresh.attempts, self.pause)
        self.fetching = Fetching(self.sources, self.scopes, self.retries, self.pause, self.waits)
        self.ledger = self.open_ledger()
        self.known = KnownTables(self.lake.layout, self.settings.search)

    def open_ledger(self) -> Ledger:
        """Return an empty ledger with the budget of this kind of run."""
        raise NotImplementedError

    def files_of(self, version: Snapshot) -> tuple[Snapshot, Sequence[str]]:
        """Return the files of a version, and those that no commit names, in which stored vectors are looked up."""
        return version, self.lake.orphans(version)

    @property
    def stored(self) -> Stored:
        """The texts and vectors that earlier runs stored."""
        with self._lock:
            if self._stored is None:
                files = self.files_of(self.base)
                self._stored = Stored(*files, lambda: self.files_of(self.lake.snapshot()), self.known)
            return self._stored

    def vectors_of(self, model: Model) -> RunVectors:
        """Return the vectors of a model that exist or are being computed."""
        stored = self.stored if self.reuse_vectors else None
        with self._lock:
            if model.id not in self._vectors:
                stored = Stored() if stored is None else stored
                self._vectors[model.id] = RunVectors(stored, self._limited(model.open()))
            return self._vectors[model.id]

    def find_in(self, shards: Iterable[str]) -> None:
        """Look for vectors in chunk shards, too, that other processes have written since this run began to look."""
        with self._lock:
            stored, looking = self._stored, list(self._vectors.values())
        if stored is None:
            # Whatever begins to look later finds them.
            return
        for shard in shards:
            stored.add_shard(shard)
        for vectors in looking:
            vectors.look_again()

    def _limited(self, embedder: Embedder) -> Embedder:
        return embedder.limited_by(self.gate) if isinstance(embedder, Limitable) else embedder

    def shard_name(self, number: int) -> str:
        """Return the name of the shards of a batch that this process writes."""
        return shard_name(self.stamp.run_id, number, self.worker)

    def check_cancelled(self) -> None:
        """Raise Cancelled if the run was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled(f"run {self.stamp.run_id} was cancelled; nothing was published")

    def pause(self, seconds: float) -> None:
        """Wait before a retry; raise if the run is cancelled meanwhile."""
        self.cancelled.wait(seconds)
        self.check_cancelled()

    def give_memory_back(self) -> None:
        """Free what only batches need, after the last one: publishing and indexing need memory of their own."""
        with self._lock:
            for vectors in self._vectors.values():
                vectors.give_memory_back()
            self._vectors.clear()
            if self._stored is not None:
                self._stored.close()
                self._stored = None
        self.fetching.give_memory_back()
        self.gave_memory_back = True
        give_freed_memory_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancelled.set()
        self.fetching.close()
        self.known.close()
        for texts in self.text_lanes.values():
            texts.lane.close()
        with self._lock:
            if self._stored is not None:
                self._stored.close()


def give_freed_memory_back() -> None:
    """Return the freed memory of all allocators to the system."""
    from parquetry.storage import arrow_memory

    arrow_memory.give_back()
    freed_memory.give_back()
