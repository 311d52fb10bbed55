"""Shards that a run has written, by the texts in them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from parquetry.storage.lake.text_shards import text_key

_Keys = npt.NDArray[np.uint64]
_Part = tuple[_Keys, npt.NDArray[np.uint32]]
"""keys of texts in order, and the place of each one's shard among the shards"""


class AddedTexts:
    """Tells which shard of a run holds a text, in 12 bytes for each text.

    One thread adds at a time; others may look texts up meanwhile.
    """

    def __init__(self) -> None:
        self._files: list[str] = []
        self._parts: tuple[_Part, ...] = ()
        """newer ones later, and each less than half as long as the one before"""

    def add(self, file: str, text_hashes: Iterable[str]) -> None:
        """Add a shard, which is the newest of its texts."""
        keys = np.unique(_keys(text_hashes))
        if not keys.size:
            return
        self._files.append(file)
        parts = [*self._parts, (keys, np.full(keys.size, len(self._files) - 1, np.uint32))]
        while len(parts) > 1 and len(parts[-2][0]) <= 2 * len(parts[-1][0]):
            newer = parts.pop()
            parts[-1] = _merged(parts[-1], newer)
        self._parts = tuple(parts)

    def files_of(self, text_hashes: Iterable[str]) -> list[str]:
        """Return the newest shards of texts, without repetitions, in order; none for a text that was not added."""
        wanted, found = _keys(text_hashes), set[int]()
        for keys, places in reversed(self._parts):
            at = np.searchsorted(keys, wanted)
            is_there = keys.take(at, mode="clip") == wanted
            found.update(places[at[is_there]].tolist())
            wanted = wanted[~is_there]
        return sorted({self._files[place] for place in found})


def _keys(text_hashes: Iterable[str]) -> _Keys:
    return np.fromiter(map(text_key, text_hashes), np.uint64)


def _merged(older: _Part, newer: _Part) -> _Part:
    """Return the texts of two parts, those of both with the shard of the newer one."""
    keys, first = np.unique(np.concatenate([newer[0], older[0]]), return_index=True)
    return keys, np.concatenate([newer[1], older[1]])[first]
