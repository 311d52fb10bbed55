"""An earlier analysis: what it found about documents that have not changed since is not computed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquetry.storage.analysis.facts import CorpusFacts
from parquetry.storage.analysis.folder import AnalysisFile

MOST_CHANGED = 0.1
"""share of the documents that may have changed since all were compared and placed; above it, all are again"""
CHANGED = b"changed"
"""key of the file: number of documents that changed since all were compared and placed"""
_COLUMNS = ("revision", "embedder", "compared", "like", "like_share", "x", "y", "cluster")


@dataclass(frozen=True, slots=True)
class Earlier:
    """The part of an earlier analysis that holds for documents of another version."""

    changed: int
    """number of documents that came, went or changed since all were compared and placed"""
    rows: Mapping[int, int]
    """row of the present facts -> row of the earlier table, of documents that have not changed"""
    table: pa.Table

    def compared(self) -> frozenset[int]:
        """Return the present rows of documents that were compared with all others."""
        compared = self.table["compared"].to_pylist()
        return frozenset(row for row, before in self.rows.items() if compared[before])

    def alike(self) -> list[tuple[int, int, float]]:
        """Return the revisions of pairs that are nearly the same, and the share that they have in common."""
        revisions, like, shares = (self.table[name].to_pylist() for name in ("revision", "like", "like_share"))
        return [
            (revision, other, share)
            for revision, others, parts in zip(revisions, like, shares, strict=True)
            for other, share in zip(others or (), parts or (), strict=True)
        ]

    def column(self, name: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return an earlier column for the present rows; NaN where there is none.

        Args:
            name: `x`, `y` or `cluster`.
            count: number of present rows.
        """
        values = np.full(count, np.nan)
        if self.rows:
            before = self.table[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
            values[list(self.rows)] = before[list(self.rows.values())]
        return values


def earlier(file: AnalysisFile | None, facts: CorpusFacts) -> Earlier | None:
    """Return what an earlier analysis knows; None if there is none, or if too much has changed since.

    Args:
        file: the analysis.
        facts: facts on the present documents.
    """
    if file is None:
        return None
    schema = pq.read_schema(file.path)
    told = (schema.metadata or {}).get(CHANGED, b"")
    if not told.isdigit() or not set(_COLUMNS) <= set(schema.names):
        return None
    table = pq.read_table(file.path, columns=list(_COLUMNS))
    before = _identities(table)
    now = _identities(facts.table)
    # Only vectors of one embedder can be compared.
    of_vectors = set(facts.rows.tolist())
    rows = {row: before[each] for each, row in now.items() if each in before and row in of_vectors}
    came = sum(1 for row in of_vectors if row not in rows)
    went = sum(1 for each in before if each not in now)
    changed = int(told) + max(came, went)
    return Earlier(changed, rows, table) if changed <= MOST_CHANGED * len(facts.rows) else None


def _identities(table: pa.Table) -> dict[tuple[int, str | None], int]:
    """Return revision and embedder of each row."""
    pairs = zip(table["revision"].to_pylist(), table["embedder"].to_pylist(), strict=True)
    return {each: row for row, each in enumerate(pairs)}
