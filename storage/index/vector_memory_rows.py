"""The columns that a hit shows of a document, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquetry.storage.database import Connection

MOST_DOCUMENTS = 500_000
"""documents above which their columns stay in the index file; they take about 200 bytes each"""


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Rows of a table of an index file."""

    numbers: npt.NDArray[np.int64]
    """int64[rows]: rowid, ascending"""
    table: pa.Table
    """columns to show, in the same order"""

    @property
    def bytes(self) -> int:
        return int(self.numbers.nbytes + self.table.nbytes)

    def of(self, numbers: Sequence[int] | npt.NDArray[Any], columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return rows as dictionaries.

        Args:
            numbers: rowids, each of which is there.
            columns: names of columns; empty for all.
        """
        table = self.table.select(columns) if columns else self.table
        rows: list[dict[str, Any]] = table.take(
            np.searchsorted(self.numbers, np.asarray(numbers, np.int64))
        ).to_pylist()
        return rows


def read_rows(connection: Connection, table: str, columns: str, most: int) -> MemoryRows | None:
    """Read columns of a table; None if it has too many rows.

    Args:
        connection: connection with the index as current database.
        table: name of the table.
        columns: SQL of the columns.
        most: maximum number of rows.
    """
    ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    if count > most:
        return None
    found = connection.sql(f"SELECT rowid AS place_, {columns} FROM {table} ORDER BY place_").to_arrow_table()
    return MemoryRows(found.column("place_").to_numpy(), found.drop_columns("place_").combine_chunks())
