"""Pairs of similar vectors, found in time that grows little faster than their number. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

LEAST_SIMILARITY = 0.95
"""cosine of two vectors from which on they are similar"""
MOST_PAIRS = 50_000
"""pairs that are returned at most"""
EXACT = 5_000
"""vectors up to which each is compared with all others"""
_NEIGHBOURS = 3
"""most similar vectors of each one that are kept"""
_BLOCK = 256
"""vectors that are compared with others at a time"""
_TILE = 16_384
"""vectors that they are compared with at a time"""
_MANY = 16
"""similar vectors of each one on average above which all but the nearest are dropped at once"""
_LEAF = 512
"""vectors of a group in which each is compared with all others"""
_TREES = 12
"""independent divisions into such groups: two vectors that one division separates meet in another"""
_MIDDLE = (0.3, 0.7)
"""shares of a group between which it is divided, at the widest gap"""
_SEED = 0

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]
Cosines = np.ndarray[tuple[int], np.dtype[np.float32]]
Check = Callable[[], None]


def no_check() -> None:
    """Go on."""


def similar_pairs(vectors: Matrix, changed: Rows | None = None, check: Check = no_check) -> list[tuple[int, int]]:
    """Return pairs of similar vectors, the most similar first: the nearest three of each, at most `MOST_PAIRS`.

    Above `EXACT` vectors they are divided into groups along random directions, several times, and compared within
    groups; docs/decisions/0105-analysis-of-large-corpora.md has the share of pairs that this finds.

    Args:
        vectors: float32[n, dimensions], L2-normalised.
        changed: rows to compare with all others, 0-based; None to compare all.
        check: called between steps; raises to end the search.

    Returns:
        Two rows each, 0-based, the smaller first.
    """
    count = len(vectors)
    nearest = _Nearest(count)
    if changed is not None or count <= EXACT:
        everything = np.arange(count)
        wanted = everything if changed is None else changed
        for start in range(0, len(wanted), _BLOCK):
            check()
            nearest.compare(vectors, wanted[start : start + _BLOCK], everything)
    else:
        generator = np.random.default_rng(_SEED)
        for _ in range(_TREES):
            for group in _groups(vectors, generator):
                check()
                nearest.compare(vectors, group, group)
    return nearest.pairs()


class _Nearest:
    """The nearest vectors of each one so far."""

    def __init__(self, count: int) -> None:
        self._rows = np.full((count, _NEIGHBOURS), -1, np.int64)
        self._cosines = np.full((count, _NEIGHBOURS), -1, np.float32)

    def compare(self, vectors: Matrix, some: Rows, others: Rows) -> None:
        """Take notice of the similar ones among others of each of some vectors."""
        for start in range(0, len(others), _TILE):
            part = others[start : start + _TILE]
            similar = vectors[some] @ vectors[part].T
            one, other = np.nonzero(similar >= LEAST_SIMILARITY)
            if len(one) > _MANY * len(some):
                # Each one finds itself, too.
                best = np.argpartition(-similar, _NEIGHBOURS, axis=1)[:, : _NEIGHBOURS + 1]
                one, place = np.nonzero(np.take_along_axis(similar, best, axis=1) >= LEAST_SIMILARITY)
                other = best[one, place]
            is_other = some[one] != part[other]
            one, other = one[is_other], other[is_other]
            if len(one):
                self._keep(some[one], part[other], similar[one, other])

    def _keep(self, ones: Rows, others: Rows, cosines: Cosines) -> None:
        """Keep the nearest of those that are known and those that were found."""
        touched = np.unique(ones)
        known = np.repeat(touched, _NEIGHBOURS)
        pairs = np.column_stack(
            (np.concatenate((known, ones)), np.concatenate((self._rows[touched].ravel(), others))),
        )
        pairs, first = np.unique(pairs, axis=0, return_index=True)
        cosines = np.concatenate((self._cosines[touched].ravel(), cosines))[first]
        order = np.lexsort((pairs[:, 1], -cosines, pairs[:, 0]))
        pairs, cosines = pairs[order], cosines[order]
        begins = np.searchsorted(pairs[:, 0], touched)
        rank = np.arange(len(pairs)) - begins[np.searchsorted(touched, pairs[:, 0])]
        kept = rank < _NEIGHBOURS
        self._rows[touched], self._cosines[touched] = -1, -1
        self._rows[pairs[kept, 0], rank[kept]] = pairs[kept, 1]
        self._cosines[pairs[kept, 0], rank[kept]] = cosines[kept]

    def pairs(self) -> list[tuple[int, int]]:
        found = self._rows >= 0
        ones, others = np.nonzero(found)[0], self._rows[found]
        pairs = np.column_stack((np.minimum(ones, others), np.maximum(ones, others)))
        pairs, first = np.unique(pairs, axis=0, return_index=True)
        cosines = self._cosines[found][first]
        order = np.lexsort((pairs[:, 1], pairs[:, 0], -cosines))[:MOST_PAIRS]
        return [(int(one), int(other)) for one, other in pairs[order]]


def _groups(vectors: Matrix, generator: np.random.Generator) -> Iterator[Rows]:
    """Yield the rows of one division into groups of at most `_LEAF`.

    Source: Dasgupta and Freund, Random projection trees and low dimensional manifolds, 2008; directions between two of
    the vectors as in Annoy.
    """
    waiting = [np.arange(len(vectors))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= _LEAF:
            yield rows
            continue
        # Equal vectors have no order of their own; each division puts them in another.
        rows = generator.permutation(rows)
        along = vectors[rows] @ (vectors[rows[0]] - vectors[rows[-1]])
        order = np.argsort(along, kind="stable")
        low, high = (int(share * len(rows)) for share in _MIDDLE)
        gaps = np.diff(along[order[low : high + 1]])
        widest = float(gaps.max(initial=0.0))
        cut = low + 1 + int(gaps.argmax()) if widest > 0 else len(rows) // 2
        waiting += [rows[order[:cut]], rows[order[cut:]]]
