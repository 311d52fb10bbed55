"""The files of each table of a corpus, listed on demand: a search needs two tables of ten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from parquetry.errors import DamagedCorpus
from parquetry.storage.files.layout import TABLES, Table

Listed = tuple[str, ...] | str
"""absolute paths or URLs of the Parquet files of a table; if it cannot be read, its damage in one line"""


class TableFiles(Mapping[Table, tuple[str, ...]]):
    """Files of the tables; looking up a damaged table is an error, never an empty list.

    A table that is listed late is as of that time. Whatever was published since stays invisible, since only rows of
    `documents` make it visible.

    Args:
        listed: tables that are already listed.
        find: lists others, in the order given; None if all are listed.
    """

    def __init__(
        self,
        listed: Mapping[Table, Listed],
        find: Callable[[Sequence[Table]], Sequence[Listed]] | None = None,
    ) -> None:
        self._listed, self._find = dict(listed), find

    def __getitem__(self, table: Table) -> tuple[str, ...]:
        self._list([table])
        found = self._listed[table]
        if isinstance(found, str):
            raise DamagedCorpus(found)
        return found

    def __iter__(self) -> Iterator[Table]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    @property
    def damaged(self) -> dict[Table, str]:
        """The damage of each table that cannot be read, in one line; lists all tables."""
        self._list(TABLES)
        return {table: found for table, found in self._listed.items() if isinstance(found, str)}

    def without(self, damaged: Mapping[Table, str]) -> TableFiles:
        """Return the files of the other tables.

        Args:
            damaged: tables that cannot be read, with the damage of each in one line.
        """
        return TableFiles({**self._listed, **damaged}, self._find)

    def _list(self, tables: Sequence[Table]) -> None:
        missing = [table for table in tables if table not in self._listed]
        if missing and self._find is not None:
            self._listed.update(zip(missing, self._find(missing), strict=True))
