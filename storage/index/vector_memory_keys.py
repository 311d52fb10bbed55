"""Identity of chunks over the files of an index, which number them differently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parquetry.storage.index.vector_memory_space import NONE, Numbers

_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""odd number near 2^64 divided by the golden ratio: spreads small numbers over all bits (Knuth, TAOCP 3, 6.4)"""


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """Identity of each chunk of an index file. Numbers of chunks and revisions differ between two files."""

    revisions: npt.NDArray[np.int64]
    """int64[chunks]"""
    places: Numbers
    """int32[chunks]: index of the chunk within its revision"""

    def carried(self, earlier: ChunkKeys) -> Numbers:
        """Return int32[chunks]: number of the same chunk in an earlier file, or NONE.

        Two files begin alike, because chunks are only ever appended; beyond that, chunks are looked up.
        """
        count, before = len(self.places), len(earlier.places)
        common = min(count, before)
        differing = (self.revisions[:common] != earlier.revisions[:common]) | (
            self.places[:common] != earlier.places[:common]
        )
        alike = int(differing.argmax()) if differing.any() else common
        found = np.full(count, NONE, np.int32)
        found[:alike] = np.arange(alike, dtype=np.int32)
        if alike < min(count, before):
            known = earlier._mixed(alike)
            order = np.argsort(known)
            at = np.minimum(np.searchsorted(known, self._mixed(alike), sorter=order), len(order) - 1)
            candidate = alike + order[at]
            same = (earlier.revisions[candidate] == self.revisions[alike:]) & (
                earlier.places[candidate] == self.places[alike:]
            )
            found[alike:] = np.where(same, candidate, NONE)
        return found

    def _mixed(self, start: int) -> npt.NDArray[np.uint64]:
        """Return one number for each chunk from `start` on; two chunks with one number are told apart by the keys."""
        mixed: npt.NDArray[np.uint64] = self.revisions[start:].astype(np.uint64) ^ (
            self.places[start:].astype(np.uint64) * _MIXER
        )
        return mixed
