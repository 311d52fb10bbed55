"""Rows on their way into the index that are sorted when all of them are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from parquetry.errors import StorageError
from parquetry.storage.database import Connection, sql_list, sql_string, tuples

_SORTED_ROWS = 4_000_000
"""rows from files that are sorted at a time, roughly; all rows of a term are, whatever their number"""
_ROW_GROUP = 32_768
"""rows of a file that are read together"""


class WaitingRows:
    """New rows of a table with a column `term`, by which they are sorted in the end.

    They wait in a temporary table; many wait in files. DuckDB spills tables and what it sorts to disk, but something of
    each million rows stays in memory. Of files, one range of terms is sorted after another.
    """

    def __init__(self, connection: Connection, table: str, folder: Path | None) -> None:
        """Create an object without rows: see `waiting_rows`."""
        self._connection = connection
        self._table = table
        self._waiting = f"temp.waiting_{table.partition('.')[2]}"
        self._folder = folder
        self._files: list[str] = []
        self._rows = 0
        if folder is None:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {self._waiting} AS FROM {table} LIMIT 0")

    def add(self, query: str) -> None:
        """Add rows.

        Args:
            query: SQL of the rows, with the columns of the table.
        """
        if self._folder is None:
            self._write(f"INSERT INTO {self._waiting} {query}")
            return
        file = str(self._folder / f"{len(self._files)}.parquet")
        # Sorted, so that most of its rows are read for one range of terms alone.
        self._write(f"COPY ({query} ORDER BY term) TO {sql_string(file)} (ROW_GROUP_SIZE {_ROW_GROUP})")
        self._files.append(file)

    def _write(self, sql: str) -> None:
        ((number,),) = self._connection.execute(sql).fetchall()
        self._rows += number

    def sort_into_index(self, by: str, first: int) -> None:
        """Write all rows to the table.

        Args:
            by: column by which the rows of a term are sorted.
            first: its smallest value in these rows; all others of the table have a smaller one.

        Raises:
            StorageError: DuckDB lost some. A search would find less, and nobody would know.
        """
        if self._folder is None:
            self._connection.execute(f"INSERT INTO {self._table} FROM {self._waiting} ORDER BY term, {by}")
            self._connection.execute(f"DROP TABLE {self._waiting}")
        else:
            self._sort_files(by)
        # A statement reports rows that it lost, and so does a count alone, for which nothing is read.
        ((held, _),) = tuples(
            self._connection, f"SELECT count(*), bit_xor({by}) FROM {self._table} WHERE {by} >= {first}"
        )
        if held != self._rows:
            raise StorageError(
                f"the search index is not complete: DuckDB {duckdb.__version__} kept {held} of {self._rows} rows of "
                f"{self._table}"
            )

    def _sort_files(self, by: str) -> None:
        rows = f"read_parquet({sql_list(self._files)})"
        for low, high in pairwise([*_first_terms(self._connection, rows), None]):
            those = f"term >= {low}" if high is None else f"term >= {low} AND term < {high}"
            self._connection.execute(f"INSERT INTO {self._table} FROM {rows} WHERE {those} ORDER BY term, {by}")


@contextmanager
def waiting_rows(connection: Connection, table: str, *, in_files: bool) -> Iterator[WaitingRows]:
    """Provide an object for the new rows of a table; its files are deleted at the end.

    Args:
        connection: connection with the index as current database.
        table: name of the table in the index, with its schema.
        in_files: True to write files, in a folder where DuckDB spills.
    """
    if not in_files:
        yield WaitingRows(connection, table, None)
        return
    ((spilled,),) = tuples(connection, "SELECT current_setting('temp_directory')")
    Path(spilled).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=spilled, prefix="waiting-") as folder:
        yield WaitingRows(connection, table, Path(folder))


def _first_terms(connection: Connection, rows: str) -> list[int]:
    """Return the first term of each range, in order."""
    found = tuples(
        connection,
        f"""SELECT min(term) FROM (
            SELECT term, (sum(rows) OVER (ORDER BY term) - rows) // {_SORTED_ROWS} AS range
            FROM (SELECT term, count(*) AS rows FROM {rows} GROUP BY term)
        ) GROUP BY range ORDER BY 1""",
    )
    return [term for (term,) in found]
