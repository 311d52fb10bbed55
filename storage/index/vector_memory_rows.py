"""The columns that a hit shows of a document, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection

if TYPE_CHECKING:
    import pyarrow as pa

MOST_DOCUMENTS = 500_000
"""documents above which their columns stay in the index file; they take about 200 bytes each"""
MOST_SHOWN = 20_000
"""rows that are kept as dictionaries, of about 2 kB each: making one takes longer than reading its chunk"""


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Rows of a table of an index file."""

    numbers: npt.NDArray[np.int64]
    """int64[rows]: rowid, ascending"""
    table: pa.Table
    """columns to show, in the same order"""
    shown: dict[int, dict[str, Any]] = field(default_factory=dict)
    """rowid -> row that a hit has shown before"""

    @property
    def bytes(self) -> int:
        return int(self.numbers.nbytes + self.table.nbytes)

    def of(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows as dictionaries.

        Args:
            numbers: rowids, each of which is there.
        """
        missing = [number for number in numbers if number not in self.shown]
        made = dict(zip(missing, self._taken(self.table, missing), strict=True)) if missing else {}
        rows = [dict(made[number] if number in made else self.shown[number]) for number in numbers]
        if len(self.shown) + len(made) <= MOST_SHOWN:
            self.shown.update(made)
        return rows

    def values(self, numbers: Sequence[int] | npt.NDArray[Any], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return some columns of rows; see `of`."""
        return self._taken(self.table.select(columns), numbers)

    def _taken(self, table: pa.Table, numbers: Sequence[int] | npt.NDArray[Any]) -> list[dict[str, Any]]:
        places = np.searchsorted(self.numbers, np.asarray(numbers, np.int64))
        rows: list[dict[str, Any]] = table.take(places).to_pylist()
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
