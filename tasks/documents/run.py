"""A run over documents: what its batches share beyond the context of every run."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from parquetry.errors import ServiceRefused
from parquetry.freed_memory import owns_process
from parquetry.llm.spending import Ledger, Purpose
from parquetry.model import ChunkSize
from parquetry.planning.costs import Cost, with_rest
from parquetry.tasks.context import RunContext
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.reading_progress import ReadingProgress
from parquetry.tasks.documents.row_spool import RowSpool

if TYPE_CHECKING:
    from parquetry.embed.base import Vectors
    from parquetry.tasks.batches.lane import BatchLane
    from parquetry.tasks.batches.waiting import Lanes
    from parquetry.tasks.documents.describe import Describer
    from parquetry.tasks.engine.workers import WorkerPool

BUDGET_KEY = "refresh.budget_usd"
"""key in the settings"""


@dataclass
class DocumentRun(RunContext):
    """A run over documents in progress."""

    reading: ReadingProgress = field(init=False)
    slots: threading.Semaphore = field(init=False)
    """permits for embedding and writing: concurrent batches, however many services they come from"""
    rows: RowSpool = field(default_factory=RowSpool)
    """rows to publish"""
    leading: dict[str, BatchLane[Vectors]] = field(default_factory=dict)
    """lanes of `text_lanes` in the process that leads the run, by id of the model"""
    _pools: dict[str | None, WorkerPool] = field(default_factory=dict)
    """serialised tokenizer -> processes that count its tokens; None where characters are counted"""
    _describer: Describer | None = None
    _turned_away: dict[str, ServiceRefused] = field(default_factory=dict)
    """refusals by id of the model"""
    _unaffordable: dict[str, float] = field(default_factory=dict)
    """id of a model whose further use exceeds the budget -> US dollars that have to be free for it; infinite for the
    rest of the run"""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reading = ReadingProgress(waits=self.waits)
        self.slots = threading.Semaphore(self.settings.refresh.workers)

    def open_ledger(self) -> Ledger:
        return Ledger(self.settings.refresh.budget_usd, BUDGET_KEY)

    def pool_of(self, namespace: str, chunk_size: ChunkSize | None = None) -> WorkerPool:
        """Return the extraction processes for a namespace's documents, started on first use.

        Namespaces share them unless chunks are measured in tokens of different models.

        Args:
            namespace: the namespace.
            chunk_size: own size of the chunks of a document.
        """
        # Most runs read nothing, and all of them wait for this module.
        from parquetry.tasks.engine.workers import WorkerPool

        by_tokens = self.settings.chunking.unit == "tokens" or chunk_size is not None
        tokenizer = self.models[namespace].open().tokenizer_json if by_tokens else None
        with self._lock:
            if tokenizer not in self._pools:
                self._pools[tokenizer] = WorkerPool(self.settings.extraction, self.settings.chunking, tokenizer)
            return self._pools[tokenizer]

    @property
    def lanes(self) -> Lanes:
        """Lanes for texts that wait for batches, in the process that leads the run."""
        return list(self.leading.values())

    def turned_away(self, model: Model, error: ServiceRefused) -> None:
        """Record that the service of a model rejects the account."""
        with self._lock:
            self._turned_away.setdefault(model.id, error)

    @contextmanager
    def paid_by(self, ledger: Ledger) -> Iterator[Self]:
        """Yield this run with another ledger, for one batch, and without lanes.

        All else is shared, texts that are being embedded too.

        Args:
            ledger: pays for the batch.
        """
        # Opened here, because what the copy opens is its own.
        _ = self.stored
        part = copy.copy(self)
        part.ledger, part._describer, part._unaffordable, part.text_lanes = ledger, None, {}, {}
        try:
            yield part
        finally:
            if part._describer is not None:
                part._describer.close()

    def out_of_budget(self, model: Model, needed_usd: float = math.inf) -> None:
        """Record that the budget does not allow further embedding with a model.

        Args:
            model: the model.
            needed_usd: US dollars that allow it again once they are free.
        """
        with self._lock:
            self._unaffordable[model.id] = needed_usd

    def affords(self, model: Model) -> bool:
        """True if the budget allows further embedding with a model; if not, no document is read for it."""
        free = self.ledger.free_usd
        return free is None or self.needed_usd(model) <= free

    def needed_usd(self, model: Model) -> float:
        """Return the US dollars that have to be free for further embedding with a model, as far as known."""
        with self._lock:
            return self._unaffordable.get(model.id, 0.0)

    def begin_again(self) -> None:
        """Forget what the budget did not allow while parts of it were reserved."""
        with self._lock:
            self._unaffordable = {key: usd for key, usd in self._unaffordable.items() if math.isfinite(usd)}

    def check_served(self, model: Model) -> None:
        """Raise ServiceRefused if the service of a model has rejected the account: no document is read then."""
        with self._lock:
            error = self._turned_away.get(model.id)
        if error is not None:
            raise ServiceRefused(str(error))

    @property
    def unpriced(self) -> frozenset[Purpose]:
        """Purposes for which services were used at an unknown price."""
        found: set[Purpose] = set()
        used = self.ledger.usage
        if "embed" in used and any(model.open().price_per_million_tokens is None for model in self.models.values()):
            found.add("embed")
        if "describe" in used and not self.settings.llm.priced:
            found.add("describe")
        return frozenset(found)

    def costs(self, known: Iterable[Cost] = ()) -> tuple[Cost, ...]:
        """Return the costs so far by source and purpose.

        Args:
            known: costs of batches.
        """
        return with_rest(known, self.ledger, self.unpriced, self.sources)

    def describer_for(self, wanted: bool | None) -> Describer | None:
        """Return the image describer, if a document or else the settings want it.

        Args:
            wanted: choice of the document; None for that of the settings.

        Raises:
            SettingsError: no model can be called.
        """
        if not (self.settings.extraction.include_image_descriptions if wanted is None else wanted):
            return None
        from parquetry.tasks.documents.describe import Describer

        with self._lock:
            if self._describer is None:
                self._describer = Describer(self.settings.llm, self.ledger)
            return self._describer

    def give_memory_back(self) -> None:
        from parquetry.tasks.engine.fork_server import end_fork_server

        self._close_pools()
        if owns_process():
            # Another program may have processes of its own from that server.
            end_fork_server()
        self.reading.give_memory_back()
        super().give_memory_back()

    def _close_pools(self) -> None:
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        self._close_pools()
        self.rows.close()
        with self._lock:
            if self._describer is not None:
                self._describer.close()
