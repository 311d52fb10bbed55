"""Selection of the known entries to compare a new one with."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parquetry.sessions.merge.thresholds import Threshold
from parquetry.sessions.model import Candidate, Draft, Entry
from parquetry.sessions.normalise import normalised_key
from parquetry.sessions.statement import content, read

Vectors = npt.NDArray[np.float32]


def ranked(text: str, scored: Iterable[tuple[Entry, float]], bar: Threshold, limit: int) -> list[Candidate]:
    """Rank scored entries, wherever they were found.

    Args:
        text: to compare them with.
        scored: entries and cosines in any order; an entry that occurs twice counts once, with its higher cosine.
        bar: minimum for the cosine combined with the words shared with the text.
        limit: maximum to return.

    Returns:
        Most alike first, ties by id, with ordinals from 1.
    """
    best: dict[str, tuple[float, Entry]] = {}
    for entry, cosine in scored:
        if entry.entry_id not in best or cosine > best[entry.entry_id][0]:
            best[entry.entry_id] = (cosine, entry)
    alike = [(cosine + bar.words * shared_words(text, entry.text), cosine, entry) for cosine, entry in best.values()]
    order = sorted((each for each in alike if each[0] >= bar.least), key=lambda each: (-each[0], each[2].entry_id))
    return [Candidate(ordinal, entry, cosine) for ordinal, (_, cosine, entry) in enumerate(order[:limit], start=1)]


def shared_words(one: str, other: str) -> float:
    """Return the share of words, numbers and names common to two texts, 0 to 1, ignoring endings and function words."""
    ours, theirs = _words(one), _words(other)
    together = ours | theirs
    return len(ours & theirs) / len(together) if together else 0.0


@functools.lru_cache(maxsize=20_000)
def _words(text: str) -> frozenset[str]:
    return content(read(text).words)


def unit(vectors: Vectors) -> Vectors:
    """Scale rows to unit length; a row that is zero or not finite becomes zero.

    Args:
        vectors: float32[n, dimension].
    """
    finite = np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, np.float32(0))
    # Squares of very large or small components would exceed the range of float32.
    largest = np.abs(finite).max(axis=1, keepdims=True, initial=0)
    scaled = finite / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True)
class Folded:
    """Drafts of a session with those that say the same merged."""

    drafts: tuple[Draft, ...]
    """in the order of first mention"""
    duplicates: tuple[tuple[int, int], ...]
    """0-based index of a merged draft in the input, and of the draft in `drafts` that it went into"""


def fold(drafts: Sequence[Draft]) -> Folded:
    """Merge the drafts of a session that are equal or nearly equal in one scope.

    Args:
        drafts: of one session, in order.

    Returns:
        Each has the text of its most confident draft (the first of equally confident ones), with the evidence of all
        and the time of the last. Drafts that are merely alike stay apart: they are compared like any others.
    """
    kept: list[Draft] = []
    places: dict[tuple[object, ...], int] = {}
    duplicates: list[tuple[int, int]] = []
    for index, draft in enumerate(drafts):
        access = draft.access
        scope = (draft.session.owner.namespace, access.visibility, access.org_id, access.user_id)
        place = places.setdefault((scope, normalised_key(draft.text)), len(kept))
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
