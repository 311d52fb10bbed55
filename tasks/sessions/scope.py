"""The live entries of one scope during a comparison: known ones, and those that the run has made so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parquetry.embed.base import Vectors
from parquetry.sessions.ledger.entry_rows import EntryScope
from parquetry.sessions.merge.candidates import ranked, unit
from parquetry.sessions.merge.thresholds import Threshold
from parquetry.sessions.model import Candidate, Draft, Entry
from parquetry.storage.entries.known_entries import KnownEntries

_LOOKED_AT = 4
"""known entries read for each wanted candidate: the ranking by words may put one before others that are nearer, and
this run may retire some"""


@dataclass(frozen=True, slots=True)
class Vectored:
    """A draft and its vector."""

    draft: Draft
    vector: Vectors
    """float32[dimension]; zeros if the model gives no vector for the text"""
    tokens: int
    number: int
    """number of its decision within its session"""


class ScopeState:
    """The live entries of a scope. Used by one thread.

    Args:
        scope: the scope.
        known: published entries.
        drafts: drafts to compare, in order.
        embedder: id of the model of their vectors.
        bar: minimum similarity of a candidate.
        limit: maximum number of candidates of a draft.
    """

    def __init__(
        self,
        scope: EntryScope,
        known: KnownEntries,
        drafts: Sequence[Vectored],
        embedder: str,
        bar: Threshold,
        limit: int,
    ) -> None:
        self.scope = scope
        self._known = known
        self._embedder = embedder
        self._bar = bar
        self._limit = limit
        self._near = self._nearest([draft.vector for draft in drafts], limit * _LOOKED_AT)
        self._made: dict[str, Entry] = {}
        """live entries that this run created or embedded again"""
        self._retired: set[str] = set()
        self._said_by: dict[str, str] = {}
        """entry that is no longer live -> the entry that says it instead"""
        self._order: list[str] = []
        """entries by row of the matrix; a retired entry keeps its row"""
        self._matrix: Vectors = np.zeros((16, len(drafts[0].vector)), np.float32)

    def live(self, entry_ids: Iterable[str]) -> dict[str, Entry]:
        """Return the live ones of the given entries."""
        found, elsewhere = {}, []
        for entry_id in entry_ids:
            if entry_id in self._made:
                found[entry_id] = self._made[entry_id]
            elif entry_id not in self._retired:
                elsewhere.append(entry_id)
        return found | self._known.entries(self.scope, elsewhere) if elsewhere else found

    def candidates(self, place: int, draft: Vectored, earlier: Sequence[tuple[Entry, Vectors]] = ()) -> list[Candidate]:
        """Return the entries to compare a draft with, most similar first.

        Args:
            place: 0-based index of the draft among the given drafts.
            draft: the draft.
            earlier: entries, with vectors, that drafts judged in the same question will become if they are new.
        """
        wanted, near = self._limit * _LOOKED_AT, self._near[place]
        alive = [hit for hit in near if hit[0].entry_id not in self._retired]
        while len(alive) < self._limit and len(near) == wanted:
            wanted *= 4
            (near,) = self._nearest([draft.vector], wanted)
            alive = [hit for hit in near if hit[0].entry_id not in self._retired]
        found = [*alive, *self._made_near(draft.vector), *_near_earlier(draft.vector, earlier)]
        return ranked(draft.draft.text, found, self._bar, self._limit)

    def now(self, entry_id: str) -> Entry | None:
        """Return the live entry that says what a given entry says or said; None if there is none yet."""
        while entry_id in self._said_by:
            entry_id = self._said_by[entry_id]
        return self.live([entry_id]).get(entry_id)

    def is_said_by(self, entry_id: str, other_id: str) -> None:
        """Record that one entry is not live and another one says the same from now on."""
        if entry_id != other_id:
            self._said_by[entry_id] = other_id
            # A restored entry says its own statement again.
            self._said_by.pop(other_id, None)

    def add(self, entry: Entry, vector: Vectors) -> None:
        """Add a live entry."""
        self._retired.discard(entry.entry_id)
        self._said_by.pop(entry.entry_id, None)
        self._made[entry.entry_id] = entry
        if len(self._order) == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[len(self._order)] = unit(vector[np.newaxis])[0]
        self._order.append(entry.entry_id)

    def supersede(self, entry_ids: Iterable[str]) -> None:
        """Mark entries as no longer live."""
        for entry_id in entry_ids:
            self._made.pop(entry_id, None)
            self._retired.add(entry_id)

    def _nearest(self, vectors: Sequence[Vectors], limit: int) -> list[list[tuple[Entry, float]]]:
        return self._known.candidates(self.scope, np.stack(vectors), self._embedder, limit, self._bar.cosine)

    def _made_near(self, vector: Vectors) -> list[tuple[Entry, float]]:
        scores = self._matrix[: len(self._order)] @ unit(vector[np.newaxis])[0]
        return [
            (self._made[self._order[row]], float(scores[row]))
            for row in np.flatnonzero(scores >= self._bar.cosine)
            if self._order[row] in self._made
        ]


def _near_earlier(vector: Vectors, earlier: Sequence[tuple[Entry, Vectors]]) -> list[tuple[Entry, float]]:
    if not earlier:
        return []
    scores = unit(np.stack([other for _, other in earlier])) @ unit(vector[np.newaxis])[0]
    return [(entry, float(score)) for (entry, _), score in zip(earlier, scores, strict=True)]
