"""The record as a process of a run sees it: what is on its way, what goes the ordinary way, and what has to wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable

from parquetry.llm.spending import Purpose
from parquetry.storage.lake.batch_ends import NOT_DONE, REFUSED, BatchEnd
from parquetry.storage.lake.batches import BatchRecords, Claim, OpenBatch

Found = Callable[[int, Claim, BatchEnd], None]
"""receives the number, claim and end of each batch that has ended, to look its results up where they are stored"""


class RecordView:
    """The requests of one model in a run, as a process sees them. Thread-safe; asks no service.

    Args:
        records: record of the corpus.
        purpose: what the requests are for.
        model: id of the embedder, or name of the language model.
        run_id: id of the run.
        found: receives batches that ended.
        known: numbers of batches that had ended before this process looked for results of any; None for all that have
            ended by now.
    """

    def __init__(
        self,
        records: BatchRecords,
        purpose: Purpose,
        model: str,
        run_id: str,
        found: Found,
        known: Collection[int] | None = None,
    ) -> None:
        self.records, self.purpose, self.model, self.run_id = records, purpose, model, run_id
        self.last = 0
        """highest number in the record at the last look"""
        self._found = found
        self._lock = threading.RLock()
        self._known = frozenset(records.ended() if known is None else known)
        self._over: set[int] = set()
        """numbers of ended batches that are taken into account"""
        self._unsent: set[int] = set()
        """numbers of batches that were given up before they were sent, and are taken into account"""
        self._open: dict[int, OpenBatch] = {}
        self._pending: dict[str, int] = {}
        """id of a request -> number of its batch, on its way"""
        self._ordinary: set[str] = set()
        """requests that a batch of this run could not answer"""
        self._blocked: set[str] = set()
        """requests that are not sent again in this run: their batch was refused, or is another run's"""

    @property
    def on_their_way(self) -> list[OpenBatch]:
        """Batches that have not ended, as of the last look."""
        with self._lock:
            return list(self._open.values())

    def read(self, unsent: Iterable[int] = (), unanswered: Iterable[int] = ()) -> list[tuple[int, Claim, BatchEnd]]:
        """Read the record, and return the batches that have ended since the last look.

        Args:
            unsent: numbers of batches that processes of this run gave up before they were sent.
            unanswered: numbers of ended batches with requests that go the ordinary way in this run, or are not sent.

        Raises:
            StorageError: the record cannot be read.
        """
        with self._lock:
            found = self.records.look()
            self.last = found.last
            still = {batch.number: batch for batch in found.open if self._is_seen(batch.claim)}
            # First, so that a request is always on its way, or its result among those that are looked up.
            new = (found.ended - self._known).union(unanswered) - self._over
            taken = [self._take_end(number) for number in sorted(new)]
            for number in self._open.keys() - still.keys():
                self.remove(number)
            for batch in still.values():
                self.add(batch)
            for number in sorted(set(unsent) - self._unsent):
                self._take_unsent(number)
            return [each for each in taken if each is not None]

    def add(self, batch: OpenBatch) -> None:
        """Note a batch as on its way."""
        with self._lock:
            if batch.number not in self._open:
                self._pending.update((item.custom_id, batch.number) for item in batch.claim.items)
            self._open[batch.number] = batch

    def remove(self, number: int) -> None:
        """Note that a batch is not on its way any more."""
        with self._lock:
            batch = self._open.pop(number, None)
            for item in batch.claim.items if batch is not None else ():
                if self._pending.get(item.custom_id) == number:
                    del self._pending[item.custom_id]

    def given_up(self, number: int) -> None:
        """Note that a batch is over without results, and that its requests are free."""
        with self._lock:
            self.remove(number)
            self._over.add(number)

    def block(self, custom_ids: Iterable[str]) -> None:
        """Have requests wait for a later run."""
        with self._lock:
            self._blocked.update(custom_ids)

    def must_wait(self, custom_id: str) -> bool:
        """Return True if a request is on its way, or is not sent again in this run."""
        with self._lock:
            return custom_id in self._pending or custom_id in self._blocked

    def goes_ordinary(self, custom_id: str) -> bool:
        """Return True if a batch could not answer a request."""
        with self._lock:
            return custom_id in self._ordinary

    def _take_end(self, number: int) -> tuple[int, Claim, BatchEnd] | None:
        """Take the end of a batch into account; None if it is of another model."""
        self._over.add(number)
        claim, end = self.records.claim_of(number), self.records.end_of(number)
        if claim is None or end is None or not self._is_seen(claim):
            return None
        items = {item.custom_id for item in claim.items}
        if end.run_id == self.run_id:
            self._ordinary |= end.ordinary
            self._blocked |= items - end.ordinary if end.status in REFUSED else set()
        elif end.status not in NOT_DONE:
            # Its results are looked up from now on; what it could not answer is left to the run that took them.
            self._blocked |= items
        self._found(number, claim, end)
        return number, claim, end

    def _take_unsent(self, number: int) -> None:
        self._unsent.add(number)
        claim = self.records.claim_of(number)
        if claim is not None and self._is_seen(claim):
            self._blocked.update(item.custom_id for item in claim.items)

    def _is_seen(self, claim: Claim) -> bool:
        return (claim.purpose, claim.model) == (self.purpose, self.model)
