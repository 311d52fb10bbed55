"""The newest fully readable search index, from which a damaged corpus is repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from parquetry.errors import StorageError
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.index.build import read_state
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import read_all


@dataclass(frozen=True, slots=True)
class Salvage:
    """An index and its version."""

    connection: Connection
    """connection with the index as current database, read-only"""
    version: int
    """version of the corpus"""
    files: Mapping[Table, frozenset[str]]
    """names of the Parquet files of each table at that version"""


@contextmanager
def salvaged(layout: Layout, settings: SearchSettings, named: Set[str]) -> Iterator[Salvage | None]:
    """Open the newest index of this corpus in which every value can be read; None if there is none.

    Args:
        layout: layout of the corpus.
        settings: give the location of the index.
        named: files of `documents` that the log names. An index with a file that is neither named nor on disk belongs
            to another corpus.
    """
    there = {entry.name for entry in filesystem_at(layout.root).entries(layout.table("documents"))}
    for opened in IndexFolder(layout, settings).opened_ones():
        try:
            state = read_state(opened.connection)
            read_all(opened.connection)
            files = {table: frozenset(names) for table, names in state.files.items()}
        except (duckdb.Error, StorageError, KeyError, ValueError):
            opened.close()
            continue
        if files.get("documents", frozenset()) <= there | named:
            try:
                yield Salvage(opened.connection, state.version, files)
            finally:
                opened.close()
            return
        opened.close()
    yield None
