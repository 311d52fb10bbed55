"""Vectors of a run: looked up by text hash before they are computed, and never computed twice concurrently."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field

import numpy as np

from parquetry.embed.base import Embedder, Vectors
from parquetry.errors import StorageError, TransientError
from parquetry.storage.lake.current import Stored, StoredVector


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

    def obtain(self, inputs: Mapping[str, str]) -> Obtained:
        """Return the vector of every text.

        Args:
            inputs: text hash -> text as sent to the embedder.

        Raises:
            TransientError: the embedder could not be reached or rejected the request for now.
            StorageError: the embedder did not return one finite vector for each text.
        """
        found, mine, theirs = self._find_or_claim(inputs)
        try:
            tokens, refused, unpaid = self._compute(inputs, mine, found)
        finally:
            self._drop(key for key, future in mine.items() if not future.done())
        for key, future in theirs.items():
            found[key] = _awaited(future)
            if not found[key].vector.any():
                refused[key] = "refused in another document of this run"
        return Obtained(found, refused, frozenset(mine).difference(unpaid), tokens, unpaid)

    def stored_in(self, file: str, text_hashes: Iterable[str]) -> None:
        """Register a written shard with these vectors: from now on they are looked up there."""
        with self._lock:
            self._stored.add_chunks(file)
            self._shards += 1
            for key in text_hashes:
                self._in_work.pop(key, None)

    def _find_or_claim(
        self, inputs: Mapping[str, str]
    ) -> tuple[dict[str, StoredVector], dict[str, Future[StoredVector]], dict[str, Future[StoredVector]]]:
        """Return stored vectors, claims that this batch computes, and claims that another batch computes."""
        while True:
            shards = self._shards
            found = self._stored.vectors(inputs, self._embedder.id)
            with self._lock:
                if shards != self._shards:
                    # A shard was written meanwhile: its vectors are neither found nor claimed any more.
                    continue
                mine: dict[str, Future[StoredVector]] = {}
                theirs: dict[str, Future[StoredVector]] = {}
                for key in inputs:
                    if key in self._in_work:
                        theirs[key] = self._in_work[key]
                    elif key not in found:
                        mine[key] = self._in_work[key] = Future()
                return found, mine, theirs

    def _compute(
        self, inputs: Mapping[str, str], mine: Mapping[str, Future[StoredVector]], found: dict[str, StoredVector]
    ) -> tuple[int, dict[str, str], dict[str, str]]:
        """Return the tokens paid for, the reasons for missing vectors, and the texts that the budget did not allow."""
        if not mine:
            return 0, {}, {}
        keys = list(mine)
        done = self._embedder.embed([inputs[key] for key in keys])
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


def _awaited(future: Future[StoredVector]) -> StoredVector:
    try:
        return future.result()
    except CancelledError as error:
        detail = "the same text was being embedded in another batch, which failed"
        raise TransientError("embedding-failed", detail) from error


def _check(vectors: Vectors, count: int, embedder: Embedder) -> None:
    if vectors.shape != (count, embedder.dimension):
        raise StorageError(
            f"embedder {embedder.id} returned an array of shape {vectors.shape} for {count} texts; nothing published"
        )
    if not np.isfinite(vectors).all():
        raise StorageError(f"embedder {embedder.id} returned values that are not finite; nothing was published")
