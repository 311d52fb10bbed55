"""A run over documents in another process than its own: opened by the first batch, closed after the last."""

from __future__ import annotations

import atexit
import secrets
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from time import monotonic

from parquetry.embed.base import Gate
from parquetry.embed.registry import calls_service
from parquetry.errors import SettingsError
from parquetry.llm.spending import Ledger, Purpose, Usage
from parquetry.planning.rows import RunStamp
from parquetry.settings.sections import Settings, override
from parquetry.sources.base import Source
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.names import printable
from parquetry.sources.registry import Scope, open_source
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.stored import chunk_shards
from parquetry.tasks.documents.models import Model, models_of
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.documents.worker_lanes import WorkerLanes
from parquetry.tasks.engine.retries import RetryCount

ORDERS = 2
"""form of orders; a worker of another one would ignore what it does not know, as that texts go through a batch API"""
IDLE_SECONDS = 60
"""seconds without a batch after which a worker closes a run, whose extraction processes hold memory"""


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A run, as another process needs to know it to process a batch."""

    stamp: RunStamp
    base: int
    """version of the corpus that the run started from"""
    scopes: tuple[Scope, ...]
    """those of the batch's documents"""
    models: Mapping[str, str]
    """namespace -> identity of its model, which has to be the same everywhere"""
    reuse_vectors: bool
    has_lanes: bool = False
    """True if texts are sent through a batch API, or on their way"""


def identity_of(model: Model) -> str:
    """Return the properties of a model that every process of a run must share, and the form of its orders."""
    prints = model.fingerprints
    return f"orders {ORDERS}, {model.id}, chunking {prints.chunking}, embedding {prints.embedding}"


class RunWorker:
    """Part of this process in a run that another process leads.

    Args:
        order: the run.
        settings: settings of the run.
        gate: limits on requests to embedding services.

    Raises:
        SettingsError: this process does not see the corpus.
    """

    def __init__(self, order: RunOrder, settings: Settings, gate: Gate) -> None:
        # Validated again, because secrets that were sent are not yet known to be masked here.
        self._settings = override(settings, {})
        self._sources: dict[tuple[str, str], Source] = {}
        self._scopes: dict[tuple[str, str], Scope] = {}
        self._models: dict[str, Model] = {}
        try:
            lake = Lake(self._settings.corpus.root)
        except SettingsError as error:
            raise SettingsError(f"{error}; every worker has to see the corpus (this one is on {_here()})") from error
        self.run = DocumentRun(
            settings=self._settings,
            stamp=order.stamp,
            lake=lake,
            base=lake.snapshot(order.base),
            sources=self._sources,
            scopes=self._scopes,
            models=self._models,
            reuse_vectors=order.reuse_vectors,
            gate=gate,
            worker=secrets.token_hex(4),
        )
        self._lanes = WorkerLanes(self.run) if order.has_lanes else None
        self.users = 0
        """batches in work"""
        self.left = monotonic()
        """end of the last batch, on the monotonic clock"""
        self._seen: set[str] = set()
        self._usage = Ledger()
        """usage of batches that failed, since the last report"""
        self._lock = threading.Lock()

    def open(self, order: RunOrder) -> None:
        """Open the sources and models of a batch that are not open yet.

        Raises:
            SettingsError: this process has another embedder than the run, or does not see the folder of a source.
        """
        with self._lock:
            new = [scope for scope in order.scopes if (scope.namespace, scope.name) not in self._sources]
            for scope in new:
                _check_seen(scope)
                key = scope.namespace, scope.name
                self._scopes[key], self._sources[key] = scope, open_source(scope, self._settings.corpus.root)
                self.run.fetching.add(key, self._sources[key], scope)
            missing = order.models.keys() - self._models.keys()
            for namespace, model in models_of(self._settings, missing).items():
                if identity_of(model) != order.models[namespace]:
                    raise SettingsError(
                        f"a worker on {_here()} has {identity_of(model)} for namespace {namespace}, and the run "
                        f"{order.models[namespace]}: give every worker the same version of Parquetry and its settings"
                    )
                self._models[namespace] = model

    def find_new_vectors(self, namespaces: Iterable[str]) -> None:
        """Look for the vectors of paid services in shards that other processes of the run have written since."""
        names = {self._settings.embedder_of(namespace) for namespace in namespaces}
        if not self.run.reuse_vectors or not any(map(calls_service, names)):
            return
        with self._lock:
            for shard in chunk_shards(self.run.lake.layout, self.run.stamp.run_id):
                if shard not in self._seen and self.run.worker not in shard.rpartition("/")[2]:
                    self.run.stored.add_shard(shard)
                self._seen.add(shard)

    @property
    def lanes(self) -> WorkerLanes:
        """The lanes for texts that wait for batches at services."""
        if self._lanes is None:
            raise ValueError(f"run {self.run.stamp.run_id} has no lanes")
        return self._lanes

    @contextmanager
    def paid_by(self, ledger: Ledger) -> Iterator[DocumentRun]:
        """Yield the run for one batch; if it fails, its usage is reported with the next one.

        Args:
            ledger: ledger of the batch.
        """
        with ExitStack() as unfinished, self.run.paid_by(ledger) as run:
            unfinished.callback(self._count_of_failed, ledger)
            yield run
            unfinished.pop_all()

    def take_counts(self, ledger: Ledger) -> tuple[dict[Purpose, Usage], tuple[RetryCount, ...]]:
        """Return the usage of a batch and of failed ones before it, and the retries since the last call.

        Args:
            ledger: ledger of the batch.
        """
        with self._lock:
            self._count(ledger)
            usage, self._usage = self._usage.usage, Ledger()
            return usage, self.run.retries.take()

    def _count_of_failed(self, ledger: Ledger) -> None:
        with self._lock:
            self._count(ledger)

    def _count(self, ledger: Ledger) -> None:
        for purpose, used in ledger.usage.items():
            self._usage.note(purpose, used)


_workers: dict[str, RunWorker] = {}
"""run id -> this process's part in it"""
_opening = threading.Lock()


@contextmanager
def joined(order: RunOrder, settings: Settings, gate: Gate) -> Iterator[RunWorker]:
    """Take part in a run for a batch; several threads may do so.

    Args:
        order: the run.
        settings: settings of the run.
        gate: limits on requests to embedding services.
    """
    run_id = order.stamp.run_id
    with _opening:
        if run_id not in _workers:
            _workers[run_id] = RunWorker(order, settings, gate)
        worker = _workers[run_id]
        worker.users += 1
    try:
        worker.open(order)
        yield worker
    finally:
        with _opening:
            worker.users -= 1
            worker.left = monotonic()
        _sweep_later()


@cache
def _sweep_later() -> None:
    """Start the thread that closes idle runs, once in a process."""
    stopped = threading.Event()

    def sweep() -> None:
        while not stopped.wait(IDLE_SECONDS):
            close_idle(IDLE_SECONDS)

    thread = threading.Thread(target=sweep, name="idle-runs", daemon=True)
    thread.start()

    def end() -> None:
        # A thread that is left at the end keeps objects of DuckDB alive, which its binding reports.
        stopped.set()
        thread.join()

    atexit.register(end)


def close_idle(seconds: float = 0) -> None:
    """Close the runs without a batch in work for some time."""
    with _opening:
        latest = monotonic() - seconds
        idle = [run_id for run_id, worker in _workers.items() if not worker.users and worker.left <= latest]
        for run_id in idle:
            _workers.pop(run_id).run.__exit__()


def _check_seen(scope: Scope) -> None:
    uri = scope.settings.uri
    if is_local(uri) and not local_path(uri).exists():
        raise SettingsError(
            f"source {scope.name}: {printable(str(local_path(uri)))} is not on {_here()}; every worker has to see the "
            "folders of the sources"
        )


def _here() -> str:
    return socket.gethostname()


atexit.register(close_idle)
