"""Which known entries a new one has to be compared with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.sessions.model import Candidate, Draft, Entry
from knowledge.sessions.near import near_key

Vectors = npt.NDArray[np.float32]


def candidates(
    vector: Vectors, entries: Sequence[Entry], vectors: Vectors, threshold: float, limit: int
) -> list[Candidate]:
    """The entries whose vectors are nearest to one, by brute force.

    Args:
        vector: float32[dimension] of the new text, of any length.
        entries: n of them, of one scope.
        vectors: float32[n, dimension] in the order of the entries, of any length.
        threshold: cosine below which an entry is none.
        limit: most to return.

    Returns:
        Best first, with ordinals from 1. A vector that is zero or not finite is near to nothing.

    Raises:
        ValueError: not as many vectors as entries, or not of the dimension of the new one.
    """
    if vectors.shape != (len(entries), len(vector)):
        raise ValueError(
            f"{len(entries)} entries and one vector of length {len(vector)}, but vectors of {vectors.shape}"
        )
    cosines = unit(vectors) @ unit(vector[np.newaxis])[0]
    return ranked(zip(entries, map(float, cosines), strict=True), threshold, limit)


def ranked(scored: Iterable[tuple[Entry, float]], threshold: float, limit: int) -> list[Candidate]:
    """The best of entries whose cosines are known, wherever they were found.

    Args:
        scored: entries and cosines in any order; an entry that comes twice counts once, with its better cosine.
        threshold: cosine below which an entry is none.
        limit: most to return.

    Returns:
        Best first, of equal ones by id, with ordinals from 1.
    """
    best: dict[str, tuple[float, Entry]] = {}
    for entry, score in scored:
        if score >= threshold and (entry.entry_id not in best or score > best[entry.entry_id][0]):
            best[entry.entry_id] = (score, entry)
    order = sorted(best.values(), key=lambda each: (-each[0], each[1].entry_id))[:limit]
    return [Candidate(ordinal, entry, score) for ordinal, (score, entry) in enumerate(order, start=1)]


def unit(vectors: Vectors) -> Vectors:
    """The rows scaled to length one; a row that is zero or not finite becomes zero.

    Args:
        vectors: float32[n, dimension].
    """
    finite = np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, np.float32(0))
    # Squares of very large or small components would leave the range of float32.
    largest = np.abs(finite).max(axis=1, keepdims=True, initial=0)
    scaled = finite / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True)
class Folded:
    """The drafts of a session after those that say the same have become one."""

    drafts: tuple[Draft, ...]
    """in the order in which they were first said"""
    duplicates: tuple[tuple[int, int], ...]
    """0-based index of a draft that was given, and that of the one in `drafts` that it went into"""


def fold(drafts: Sequence[Draft]) -> Folded:
    """Make one draft of those of a session that are equal or nearly equal in one scope.

    Args:
        drafts: of one session, in order.

    Returns:
        Each says what its most confident one says (the first of equally confident ones), with the evidence of all and
        the time of the last. Drafts that are merely alike stay apart: they are compared like any others.
    """
    kept: list[Draft] = []
    places: dict[tuple[object, ...], int] = {}
    duplicates: list[tuple[int, int]] = []
    for index, draft in enumerate(drafts):
        access = draft.access
        scope = (draft.session.owner.namespace, access.visibility, access.org_id, access.user_id)
        place = places.setdefault((scope, near_key(draft.text)), len(kept))
        if place == len(kept):
            kept.append(draft)
        else:
            kept[place] = _united(kept[place], draft)
            duplicates.append((index, place))
    return Folded(tuple(kept), tuple(duplicates))


def _united(first: Draft, second: Draft) -> Draft:
    surer = second if second.confidence > first.confidence else first
    evidence = tuple(dict.fromkeys((*first.evidence, *second.evidence)))
    return dataclasses.replace(surer, evidence=evidence, said_at=max(first.said_at, second.said_at))
