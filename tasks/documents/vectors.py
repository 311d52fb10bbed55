"""Vectors of a run: looked up by text hash before they are computed, and never computed twice concurrently."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from parquetry.embed.base import Accountable, Embedder, Vectors
from parquetry.errors import BudgetReached, StorageError, TransientError
from parquetry.freed_memory import Relievable
from parquetry.llm.spending import Ledger
from parquetry.storage.lake.stored import Stored, StoredVector

if TYPE_CHECKING:
    from parquetry.tasks.batches.outbox import Owner
    from parquetry.tasks.batches.texts import TextLane


@dataclass(frozen=True, slots=True)
class Obtained:
    """The vectors of a batch's texts."""

    by_hash: Mapping[str, StoredVector]
    """vector by text hash; zeros for a text without a vector"""
    refused: Mapping[str, str]
    """text hash -> reason why it has no vector"""
    computed: frozenset[str]
    """text hashes that were embedded for this batch"""
    tokens_paid: int
    unpaid: Mapping[str, str] = field(default_factory=dict)
    """text hash -> reason why the budget did not allow embedding; the text has no vector"""
    awaited: frozenset[str] = frozenset()
    """text hashes whose vectors a batch brings later"""


@dataclass(slots=True)
class _Claims:
    """The vectors of a batch that are still missing, by who computes them."""

    mine: dict[str, Future[StoredVector]] = field(default_factory=dict)
    """claims that this batch computes"""
    theirs: dict[str, Future[StoredVector]] = field(default_factory=dict)
    """claims that another batch computes"""
    awaited: set[str] = field(default_factory=set)
    unpaid: dict[str, str] = field(default_factory=dict)


class RunVectors:
    """Find vectors of earlier runs, of crashed runs and of other batches of this run; compute the rest.

    Args:
        stored: what earlier runs stored.
        embedder: the model of the run.
    """

    def __init__(self, stored: Stored, embedder: Embedder) -> None:
        self._stored = stored
        self._embedder = embedder
        self._lock = threading.Lock()
        self._in_work: dict[str, Future[StoredVector]] = {}
        self._shards = 0
        """number of shards written in this run"""

    def obtain(
        self,
        inputs: Mapping[str, str],
        owners: Mapping[str, Owner] | None = None,
        ledger: Ledger | None = None,
        lane: TextLane | None = None,
    ) -> Obtained:
        """Return the vector of every text.

        Args:
            inputs: text hash -> text as sent to the embedder.
            owners: text hash -> source of its first document, for texts that may wait for a batch.
            ledger: ledger that pays for the missing ones; None for a model that costs nothing.
            lane: takes texts that may wait; None if none may.

        Raises:
            TransientError: the embedder could not be reached or rejected the request for now.
            StorageError: the embedder did not return one finite vector for each text.
        """
        found, claims = self._find_or_claim(inputs, owners or {}, lane)
        mine = claims.mine
        try:
            tokens, refused, unpaid = self._compute(inputs, mine, found, ledger)
        finally:
            self._drop(key for key, future in mine.items() if not future.done())
        for key, future in claims.theirs.items():
            found[key] = _awaited(future)
            if not found[key].vector.any():
                refused[key] = "refused in another document of this run"
        computed = frozenset(mine).difference(unpaid)
        return Obtained(found, refused, computed, tokens, {**unpaid, **claims.unpaid}, frozenset(claims.awaited))

    def stored_in(self, file: str, text_hashes: Iterable[str]) -> None:
        """Register a written shard with these vectors: from now on they are looked up there."""
        keys = list(text_hashes)
        with self._lock:
            self._stored.add_chunks(file, keys)
            self._shards += 1
            for key in keys:
                self._in_work.pop(key, None)

    def look_again(self) -> None:
        """Have searches that are in progress repeated: another process's shard was added to the stored ones."""
        with self._lock:
            self._shards += 1

    def give_memory_back(self) -> None:
        """Free what the embedder holds for the next texts."""
        if isinstance(self._embedder, Relievable):
            self._embedder.give_memory_back()

    def _find_or_claim(
        self, inputs: Mapping[str, str], owners: Mapping[str, Owner], lane: TextLane | None = None
    ) -> tuple[dict[str, StoredVector], _Claims]:
        """Return stored vectors, and claim the others."""
        while True:
            shards = self._shards
            found = self._stored.vectors(inputs, self._embedder.id)
            with self._lock:
                if shards != self._shards:
                    # A shard was written meanwhile: its vectors are neither found nor claimed any more.
                    continue
                claims = _Claims()
                for key, text in inputs.items():
                    if key in self._in_work:
                        claims.theirs[key] = self._in_work[key]
                    elif key not in found and (lane is None or not _waits(lane, key, text, owners.get(key), claims)):
                        claims.mine[key] = self._in_work[key] = Future()
                return found, claims

    def _compute(
        self,
        inputs: Mapping[str, str],
        mine: Mapping[str, Future[StoredVector]],
        found: dict[str, StoredVector],
        ledger: Ledger | None,
    ) -> tuple[int, dict[str, str], dict[str, str]]:
        """Return the tokens paid for, the reasons for missing vectors, and the texts that the budget did not allow."""
        if not mine:
            return 0, {}, {}
        keys = list(mine)
        done = _paid_by(ledger, self._embedder).embed([inputs[key] for key in keys])
        _check(done.vectors, len(keys), self._embedder)
        for index, key in enumerate(keys):
            if index in done.unpaid:
                continue
            found[key] = StoredVector(done.vectors[index], int(done.token_counts[index]))
            mine[key].set_result(found[key])
        refused = {keys[index]: reason for index, reason in done.refused.items()}
        return done.tokens, refused, {keys[index]: reason for index, reason in done.unpaid.items()}

    def _drop(self, keys: Iterable[str]) -> None:
        """Drop claims whose computation failed; a batch that waits for one fails and is retried."""
        with self._lock:
            for key in keys:
                future = self._in_work.pop(key, None)
                if future is not None:
                    future.cancel()


def _waits(lane: TextLane, key: str, text: str, owner: Owner | None, claims: _Claims) -> bool:
    """Return True if a text is not embedded now, and note why."""
    try:
        is_awaited = lane.waits(key, text, owner)
    except BudgetReached as error:
        claims.unpaid[key] = str(error)
        return True
    if is_awaited:
        claims.awaited.add(key)
    return is_awaited


def _awaited(future: Future[StoredVector]) -> StoredVector:
    try:
        return future.result()
    except CancelledError as error:
        detail = "the same text was being embedded in another batch, which failed"
        raise TransientError("embedding-failed", detail) from error


def _paid_by(ledger: Ledger | None, embedder: Embedder) -> Embedder:
    """Return the embedder with its requests recorded in a ledger, if they cost money."""
    return embedder if ledger is None or not isinstance(embedder, Accountable) else embedder.accounted_by(ledger)


def _check(vectors: Vectors, count: int, embedder: Embedder) -> None:
    if vectors.shape != (count, embedder.dimension):
        raise StorageError(
            f"embedder {embedder.id} returned an array of shape {vectors.shape} for {count} texts; nothing published"
        )
    if not np.isfinite(vectors).all():
        raise StorageError(f"embedder {embedder.id} returned values that are not finite; nothing was published")
