"""Documents that say nearly the same: their words decide. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

LEAST_SHARE = 0.7
"""share of word sequences that two documents have in common from which on they are nearly the same"""
_SEQUENCE = 5
"""words of a sequence"""
_LONGEST = 200_000
"""characters of a text that are compared"""
SKETCHED = 256
"""sequences of a text that are compared"""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""odd number that spreads hashes over all bits"""
_WORD = re.compile(r"\w+")

Sketch = np.ndarray[tuple[int], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class Likeness:
    """Two documents that are nearly the same, by their places in the list that was compared."""

    first: int
    """0-based"""
    second: int
    """0-based, greater than `first`"""
    share: float
    """share of the word sequences of both that they have in common, 0 to 1"""


def likenesses(pairs: Iterable[tuple[int, int]], sketches: Mapping[int, Sketch]) -> list[Likeness]:
    """Return the pairs whose texts have most of their word sequences in common, in order.

    Args:
        pairs: pairs to compare.
        sketches: sketches of the texts, by place.
    """
    shares = ((one, other, shared(sketches[one], sketches[other])) for one, other in sorted(pairs))
    return [Likeness(one, other, share) for one, other, share in shares if share >= LEAST_SHARE]


def sketch(text: str) -> Sketch:
    """Return the least hashes of a text's sequences of five words; of a shorter text, the hash of its words.

    Source: Broder, On the resemblance and containment of documents, 1997 (bottom-k sketches).

    Args:
        text: text; of a long one, only the beginning counts.

    Returns:
        uint64[at most `SKETCHED`], ascending, without repetitions.
    """
    words = [crc32(word.lower().encode("utf-8", "surrogatepass")) for word in _WORD.findall(text[:_LONGEST])]
    hashed = np.array(words or [0], np.uint64) * _FACTOR
    width = min(_SEQUENCE, len(hashed))
    rolled = np.zeros(len(hashed) - width + 1, np.uint64)
    for place in range(width):
        rolled = (rolled ^ hashed[place : len(hashed) - width + 1 + place]) * _FACTOR
        rolled ^= rolled >> np.uint64(29)
    return np.unique(rolled)[:SKETCHED]


def shared(one: Sketch, other: Sketch) -> float:
    """Return the share of the word sequences of two texts that they have in common, 0 to 1.

    It is exact for texts of at most `SKETCHED` sequences together, else an estimate, which is .03 off on average.
    """
    together = np.union1d(one, other)[:SKETCHED]
    both = np.isin(together, one, assume_unique=True) & np.isin(together, other, assume_unique=True)
    return float(both.sum() / len(together))


def groups(likenesses: Sequence[Likeness], count: int) -> list[int]:
    """Return the number of the group of each document: that of its first member; -1 for one that is like no other.

    Args:
        likenesses: pairs that are alike.
        count: number of documents.
    """
    first = list(range(count))

    def root(place: int) -> int:
        while first[place] != place:
            first[place] = first[first[place]]
            place = first[place]
        return place

    alike: set[int] = set()
    for each in likenesses:
        one, other = sorted((root(each.first), root(each.second)))
        first[other] = one
        alike |= {each.first, each.second}
    return [root(place) if place in alike else -1 for place in range(count)]
