"""What is live in one scope while a run compares: what was known before, and what the run made of it so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parquetry.embed.base import Vectors
from parquetry.sessions.ledger.entry_rows import EntryScope
from parquetry.sessions.merge.candidates import ranked, unit
from parquetry.sessions.merge.thresholds import Bar
from parquetry.sessions.model import Candidate, Draft, Entry
from parquetry.storage.entries.known_entries import KnownEntries

_LOOKED_AT = 4
"""known entries that are looked at for each candidate that is wanted: words may put one before others that are nearer,
and this run may retire some"""


@dataclass(frozen=True, slots=True)
class Vectored:
    """A draft and its vector."""

    draft: Draft
    vector: Vectors
    """float32[dimension]; zeros if the model has none for the text"""
    tokens: int
    number: int
    """of its decision within its session"""


class ScopeState:
    """The live entries of a scope. Used by one thread.

    Args:
        scope: the scope.
        known: what was published.
        drafts: that will be compared, in order.
        embedder: id of the model of their vectors.
        bar: that an entry has to reach to be a candidate.
        limit: most candidates of a draft.
    """

    def __init__(
        self,
        scope: EntryScope,
        known: KnownEntries,
        drafts: Sequence[Vectored],
        embedder: str,
        bar: Bar,
        limit: int,
    ) -> None:
        self.scope = scope
        self._known = known
        self._embedder = embedder
        self._bar = bar
        self._limit = limit
        self._near = self._nearest([draft.vector for draft in drafts], limit * _LOOKED_AT)
        self._made: dict[str, Entry] = {}
        """live entries that this run made or embedded anew"""
        self._retired: set[str] = set()
        self._said_by: dict[str, str] = {}
        """entry that is not live -> the one that says it instead"""
        self._order: list[str] = []
        """entries by row of the matrix; one that was retired keeps its row"""
        self._matrix: Vectors = np.zeros((16, len(drafts[0].vector)), np.float32)

    def live(self, entry_ids: Iterable[str]) -> dict[str, Entry]:
        """Those of some entries that are live."""
        found, elsewhere = {}, []
        for entry_id in entry_ids:
            if entry_id in self._made:
                found[entry_id] = self._made[entry_id]
            elif entry_id not in self._retired:
                elsewhere.append(entry_id)
        return found | self._known.entries(self.scope, elsewhere) if elsewhere else found

    def candidates(self, place: int, draft: Vectored, earlier: Sequence[tuple[Entry, Vectors]] = ()) -> list[Candidate]:
        """The entries that a draft has to be compared with, most alike first.

        Args:
            place: 0-based, of the draft among those that were given.
            draft: the draft.
            earlier: what drafts that are judged together with it will be if they are new; with their vectors.
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
        """The live entry that says what an entry says or said; None if there is none yet."""
        while entry_id in self._said_by:
            entry_id = self._said_by[entry_id]
        return self.live([entry_id]).get(entry_id)

    def is_said_by(self, entry_id: str, other_id: str) -> None:
        """One entry is not live, and from now on another one says what it says."""
        if entry_id != other_id:
            self._said_by[entry_id] = other_id
            # What comes back after it was replaced is said by itself.
            self._said_by.pop(other_id, None)

    def add(self, entry: Entry, vector: Vectors) -> None:
        """An entry is live from now on."""
        self._retired.discard(entry.entry_id)
        self._said_by.pop(entry.entry_id, None)
        self._made[entry.entry_id] = entry
        if len(self._order) == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[len(self._order)] = unit(vector[np.newaxis])[0]
        self._order.append(entry.entry_id)

    def retire(self, entry_ids: Iterable[str]) -> None:
        """Entries are not live any more."""
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
