"""The identities of documents in memory, for indexes that are small enough: the SQL of `ranking` over arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, tuples
from parquetry.storage.index.ranking_arrays import identity_parts
from parquetry.storage.index.vector_memory_postings import by_term

LARGEST = 10_000_000
"""words of identities above which they stay in the index file; they take 8 bytes each, and are read at each publish"""


@dataclass(frozen=True, slots=True)
class Identities:
    """The identities of one index file, by term."""

    starts: npt.NDArray[np.int64]
    """int64[terms + 1]: place of the first identity of each term"""
    numbers: npt.NDArray[np.int32]
    """int32[words]: number of the document"""
    weights: npt.NDArray[np.float32]
    """float32[words]: weight of the word in the identity"""

    @property
    def bytes(self) -> int:
        return self.starts.nbytes + self.numbers.nbytes + self.weights.nbytes

    def parts(self, weights: Mapping[int, float]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return documents and what each word adds to their scores, as `ranking.identity_parts` computes it.

        Args:
            weights: term -> its weight; not empty.
        """
        places = [slice(int(self.starts[term]), int(self.starts[term + 1])) for term in weights]
        numbers = np.concatenate([self.numbers[place] for place in places])
        asked = np.repeat(np.array(list(weights.values()), np.float32), [place.stop - place.start for place in places])
        held = np.concatenate([self.weights[place] for place in places])
        return numbers, identity_parts(asked, held)


def read_identities(connection: Connection) -> Identities | None:
    """Read the identities of an index; None if there are too many.

    Args:
        connection: connection with the index as current database.
    """
    ((count, terms),) = tuples(
        connection, "SELECT (SELECT count(*) FROM parts.identities), (SELECT count(*) FROM parts.terms)"
    )
    if count > LARGEST:
        return None
    found = connection.execute("SELECT term, document, weight FROM parts.identities").fetchnumpy()
    term, number, weight = (np.asarray(found[name]) for name in ("term", "document", "weight"))
    order = by_term(term)
    return Identities(np.searchsorted(term[order], np.arange(terms + 1)), number[order], weight[order])
