"""Tables as the search index knows them: a refresh asks it instead of opening every shard that exists.

The index of the version that a run starts from holds the current rows of `documents`. Where there is none, or it cannot
be read, the shards are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import duckdb

from parquetry.errors import StorageError, first_line
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, sql_string
from parquetry.storage.files.layout import Layout
from parquetry.storage.index.files import kept
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import OpenIndex
from parquetry.storage.index.remembered import shards_of_texts, unchecked
from parquetry.storage.lake.current import Content, CurrentRows
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.text_shards import ShardsOfTexts

Result = TypeVar("Result")
_log = logging.getLogger("parquetry")


class UnusableIndex(Exception):
    """The index cannot be read in full; the tables can."""


class IndexedRows(CurrentRows):
    """Current rows as an index of their version holds them: no shard is opened, and no superseded row is read.

    Shards that have changed since the index compared them with their checksums are compared again.

    Args:
        opened: index of the snapshot's version.
        snapshot: the version to read.
        namespaces: namespaces to include; None for all.
        what: kind of rows.

    Raises:
        DamagedCorpus: on reading, if a shard does not hold what was written.
        UnusableIndex: on reading, if the index is damaged.
    """

    def __init__(
        self,
        opened: OpenIndex,
        snapshot: Snapshot,
        namespaces: Iterable[str] | None = None,
        what: Content = "documents",
    ) -> None:
        super().__init__(snapshot, namespaces, what)
        self._opened = opened
        self._indexed = snapshot

    @property
    def _scan(self) -> str:
        return "SELECT * EXCLUDE (doc, number) FROM parts.documents"

    def _newest(self, columns: str, told: str, wanted: str | None = None) -> str:
        return f"SELECT {columns} FROM ({self._scan}) WHERE {told} AND {wanted or self._wanted}"

    def _all(
        self,
        connection: Connection,  # noqa: ARG002 - of shards only
        columns: str,
        told: str | None = None,
    ) -> Iterator[str]:
        yield self._newest(columns, told or self._told)

    @contextmanager
    def _connected(self, *, check: bool = True) -> Iterator[Connection]:
        if check and not self._is_checked and self._indexed.layout.is_local:
            files = self._indexed.files["documents"]
            with _index():
                changed = unchecked(self._opened.connection, self._indexed.layout, files)
            check_written(self._indexed, "documents", changed)
            self._is_checked = True
        with _index(), self._opened.session() as session:
            yield session


class KnownTables:
    """The search index of a corpus, as far as it saves reading tables. Safe to use from several threads.

    Args:
        layout: layout of the corpus.
        search: settings that give the location of the index.
    """

    def __init__(self, layout: Layout, search: SearchSettings) -> None:
        self._layout, self._search = layout, search
        self._lock = Lock()
        self._opened: OpenIndex | None = None
        self._is_trusted = True

    def rows(
        self, snapshot: Snapshot, namespaces: Iterable[str] | None = None, what: Content = "documents"
    ) -> CurrentRows:
        """Return the current rows of a version, from its index if there is one; it stays open until `close`."""
        if not self._is_trusted:
            return CurrentRows(snapshot, namespaces, what)
        with self._lock:
            if self._opened is None or self._opened.version != snapshot.version:
                self._close()
                self._opened = IndexFolder(self._layout, self._search).open_version(snapshot)
            if self._opened is None:
                return CurrentRows(snapshot, namespaces, what)
            return IndexedRows(self._opened, snapshot, namespaces, what)

    def read(self, work: Callable[[], Result]) -> Result:
        """Return the result of work that reads `rows`; do it again with the tables if the index cannot be read."""
        try:
            return work()
        except UnusableIndex as error:
            _log.warning("the search index cannot be read, the tables are read instead: %s", error)
            self._is_trusted = False
            self.close()
            return work()

    def shards_of(self, connection: Connection, text_hashes: Sequence[str]) -> ShardsOfTexts:
        """Return the shards in which texts may be, from the newest index of whichever version.

        Args:
            connection: connection to use, to no database.
            text_hashes: hashes of the texts.
        """
        newest = IndexFolder(self._layout, self._search).newest()
        if newest is None or not self._is_trusted:
            return ShardsOfTexts()
        # A database is attached to all connections of one instance.
        with self._lock, kept(newest) as held:
            if not held:
                return ShardsOfTexts()
            try:
                connection.execute(f"ATTACH {sql_string(str(newest.path))} AS known (READ_ONLY)")
            except duckdb.Error:
                return ShardsOfTexts()
            try:
                connection.execute("USE known")
                return shards_of_texts(connection, text_hashes)
            except (StorageError, duckdb.Error):
                # An index of an earlier program, or a damaged one.
                return ShardsOfTexts()
            finally:
                connection.execute("USE memory")
                connection.execute("DETACH known")

    def close(self) -> None:
        """Release the index, so that its file can be reused."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


@contextmanager
def _index() -> Iterator[None]:
    """Tell errors of the index from those of the tables."""
    try:
        yield
    except (StorageError, duckdb.Error) as error:
        raise UnusableIndex(first_line(error)) from error
