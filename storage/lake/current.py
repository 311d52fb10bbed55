"""Read the current rows of `documents`: of a corpus with many of them, only what is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquetry.model import TRANSCRIPTS_TYPE, Access, DocumentRow
from parquetry.planning.outline import DocumentOutline
from parquetry.sources.registry import PublishedSource
from parquetry.storage.database import Connection, each_row, open_duckdb, reading, sql_string, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.lake import schema
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_KNOWLEDGE
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.snapshot_views import scan

Content = Literal["documents", "knowledge", "listed", "all"]
"""documents; entries, sessions and files of sessions; documents and files of sessions, which sources list; all rows"""
_IS_TRANSCRIPT = f"coalesce(media_type = '{TRANSCRIPTS_TYPE}', false)"
_CONTENT: Mapping[Content, str] = {
    "documents": IS_DOCUMENT,
    "knowledge": IS_KNOWLEDGE,
    "listed": f"({IS_DOCUMENT} OR {_IS_TRANSCRIPT})",
    "all": "true",
}
_BATCH = 20_000
"""rows of some columns that are read at once"""
_ACCESS = ("visibility", "org_id", "user_id", "tags")
_SEVERAL = "several_rows"
"""name of the hashes of documents that have several rows"""
_KEY = "hash(namespace, document_id)"
_CURRENT = """SELECT {columns} FROM history WHERE NOT removed AND {wanted} AND (namespace, document_id, sequence) IN (
    SELECT namespace, document_id, max(sequence) FROM history GROUP BY ALL
)"""
_ONCE = f"""SELECT {{columns}} FROM history ANTI JOIN {_SEVERAL} ON {_KEY} = {_SEVERAL}.key
WHERE NOT removed AND {{wanted}}"""
"""current ones among the documents that have a single row: no group of all of them is made in memory"""
_HISTORY = "WITH history AS NOT MATERIALIZED (SELECT * FROM ({history}) WHERE {told}) "
_AMONG_SEVERAL = f"{{told}} AND {_KEY} IN (SELECT key FROM {_SEVERAL})"
_IS_NAMED = "document_id IN (SELECT value FROM chosen)"
_SUFFIX = r"lower(regexp_extract(path, '[^/](\.[^/.]+)$', 1))"
"""SQL of the extension of a path, as `PurePosixPath` finds it"""


def current_rows(
    snapshot: Snapshot, namespaces: Iterable[str] | None = None, what: Content = "documents"
) -> list[DocumentRow]:
    """Return the current rows of `documents` without removed ones, ordered by namespace, source and path.

    Args:
        snapshot: the version to read.
        namespaces: namespaces to include; None for all.
        what: kind of rows.
    """
    return CurrentRows(snapshot, namespaces, what).all()


@dataclass(slots=True)
class Amounts:
    """Sums over published documents of some kinds, earlier versions of them included."""

    by_extension: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """extension in small letters, with its dot -> bytes, characters, tokens"""
    sizes: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """namespace -> sizes of its documents in bytes"""


class CurrentRows:
    """The current rows of `documents` without removed ones, read from the shards anew each time.

    Args:
        snapshot: the version to read; None for a corpus that does not exist yet.
        namespaces: namespaces to include; None for all.
        what: kind of rows.

    Raises:
        DamagedCorpus: on reading, if a shard does not hold what was written.
    """

    def __init__(
        self, snapshot: Snapshot | None, namespaces: Iterable[str] | None = None, what: Content = "documents"
    ) -> None:
        self._snapshot = snapshot
        self._files: Sequence[str] = snapshot.files["documents"] if snapshot else ()
        self._is_checked = False
        # A list in this form is compared with the statistics of row groups, so that other namespaces are not read.
        self._told = "true" if namespaces is None else _among("namespace", namespaces)
        self._wanted = _CONTENT[what]
        self._several: pa.Table | None = None

    def each(self) -> Iterator[DocumentRow]:
        """Yield all rows in arbitrary order, a few in memory at a time."""
        with self._connected() as connection:
            # Each thread holds rows of its own in memory, and converting them to objects takes longer than reading
            # them.
            connection.execute("SET threads = 1")
            made = schema.DocumentRows()
            for statement in self._all(connection, "*"):
                for values in each_row(connection, statement):
                    yield made.row(values)

    def all(self) -> list[DocumentRow]:
        """Return all rows, ordered by namespace, source and path."""
        return _in_order(self.each())

    def outlines(self, paths: Collection[str] | None = None) -> Iterator[DocumentOutline]:
        """Yield the outlines of all rows in arbitrary order.

        Args:
            paths: paths of the documents to read; None for all.
        """
        with self._connected() as connection:
            connection.execute("SET threads = 1")
            if paths is not None:
                connection.register("chosen", _chosen(paths))
                told = f"{self._told} AND path IN (SELECT value FROM chosen)"
                yield from _outlines(connection, self._newest(_OUTLINE, told))
                return
            for statement in self._all(connection, _OUTLINE):
                yield from _outlines(connection, statement)

    def amounts(self, extensions: Collection[str], namespaces: Collection[str]) -> Amounts:
        """Return sums over indexed documents.

        Args:
            extensions: extensions to sum up.
            namespaces: namespaces whose sizes are wanted.
        """
        found = Amounts()
        with self._connected() as connection:
            indexed = (
                f"FROM ({self._scan}) WHERE {self._told} AND {self._wanted} AND status = 'indexed' AND NOT removed"
            )
            sums = f"""SELECT {_SUFFIX} AS extension, sum(size)::BIGINT, sum(characters)::BIGINT, sum(tokens)::BIGINT
                {indexed} AND {_among(_SUFFIX, extensions)} GROUP BY extension"""
            found.by_extension = {extension: tuple(rest) for extension, *rest in tuples(connection, sums)}
            sizes = f"SELECT DISTINCT namespace, size {indexed} AND {_among('namespace', namespaces)}"
            for namespace, size in tuples(connection, sizes) if namespaces else ():
                found.sizes[namespace].add(size)
        return found

    def named(self, document_ids: Iterable[str]) -> list[DocumentRow]:
        """Return the rows of the given documents, ordered by namespace, source and path."""
        return self._looked_up(document_ids, f"{self._told} AND {_IS_NAMED}", self._wanted)

    def each_named(self, document_ids: Iterable[str]) -> Iterator[DocumentRow]:
        """Yield the rows of the given documents in arbitrary order, a few in memory at a time.

        Args:
            document_ids: consumed before the first row is read.
        """
        chosen = _chosen(document_ids)
        if not chosen.num_rows or not self._files:
            return
        with self._connected() as connection:
            connection.execute("SET threads = 1")
            # Of two tables that look equally large, DuckDB would keep the one with whole rows in memory to join them.
            connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
            connection.register("chosen", chosen)
            told, made = f"{self._told} AND {_IS_NAMED}", schema.DocumentRows()
            # Which documents have several rows is not looked for among all of them on account of a few.
            all_known = self._several is not None
            for statement in self._all(connection, "*", told) if all_known else (self._newest("*", told),):
                for values in each_row(connection, statement):
                    yield made.row(values)

    def holding(self, content_hashes: Iterable[str]) -> list[DocumentRow]:
        """Return the rows with one of the given content hashes, ordered by namespace, source and path."""
        has_one = "content_hash IN (SELECT value FROM chosen)"
        told = f"{self._told} AND document_id IN (SELECT document_id FROM ({self._scan}) WHERE {has_one})"
        return self._looked_up(content_hashes, told, f"{self._wanted} AND {has_one}")

    def sources(self) -> list[tuple[str, str, bool]]:
        """Return namespace and name of each source, and whether its documents are files of sessions."""
        found: set[tuple[str, str, bool]] = set()
        with self._connected(check=False) as connection:
            for statement in self._all(connection, f"namespace, source, {_IS_TRANSCRIPT}"):
                found.update(tuples(connection, f"SELECT DISTINCT * FROM ({statement})"))
        return sorted(found)

    @property
    def _scan(self) -> str:
        return scan("documents", self._files)

    def _newest(self, columns: str, told: str, wanted: str | None = None) -> str:
        """Return SQL of current rows; DuckDB makes groups of all documents of which rows are told."""
        history = _HISTORY.format(history=self._scan, told=told)
        return history + _CURRENT.format(columns=columns, wanted=wanted or self._wanted)

    def _all(self, connection: Connection, columns: str, told: str | None = None) -> Iterator[str]:
        """Yield statements that return all current rows between them, or those that `told` is true of."""
        if not self._files:
            return
        told = told or self._told
        if self._several is None:
            self._several = pa.table({"key": self._keys_of_several(connection)})
        connection.register(_SEVERAL, self._several)
        yield _HISTORY.format(history=self._scan, told=told) + _ONCE.format(columns=columns, wanted=self._wanted)
        if self._several.num_rows:
            yield self._newest(columns, _AMONG_SEVERAL.format(told=told))

    def _keys_of_several(self, connection: Connection) -> npt.NDArray[np.uint64]:
        """Return the hashes of documents that have several rows: eight bytes of memory for each row of the table."""
        ((rows,),) = tuples(connection, f"SELECT count(*) FROM ({self._scan}) WHERE {self._told}")
        keys = np.empty(rows, np.uint64)
        filled = 0
        query = f"SELECT {_KEY} AS key FROM ({self._scan}) WHERE {self._told}"
        for batch in _batches(connection, query):
            keys[filled : filled + batch.num_rows] = batch.column(0).to_numpy()
            filled += batch.num_rows
        keys.sort()
        return np.unique(keys[1:][keys[1:] == keys[:-1]])

    def _looked_up(self, values: Iterable[str], told: str, wanted: str) -> list[DocumentRow]:
        chosen = _chosen(values)
        if not chosen.num_rows:
            return []
        with self._connected() as connection:
            if not self._files:
                return []
            connection.register("chosen", chosen)
            made = schema.DocumentRows()
            return _in_order(map(made.row, each_row(connection, self._newest("*", told, wanted))))

    @contextmanager
    def _connected(self, *, check: bool = True) -> Iterator[Connection]:
        if check and self._snapshot is not None and self._files and not self._is_checked:
            # Damaged rows would be published again, and the damage could no longer be recognised.
            check_written(self._snapshot, "documents", self._files)
            self._is_checked = True
        with open_duckdb() as connection:
            if self._snapshot is not None:
                filesystem_at(self._snapshot.layout.root).attach(connection)
            yield connection


def published_sources(
    root: str, rows: Callable[[Snapshot, None, Content], CurrentRows] = CurrentRows
) -> list[PublishedSource]:
    """Return the sources with documents or session files in a corpus; empty for a corpus that does not exist yet.

    Args:
        root: root of the corpus.
        rows: makes the rows of a version, namespaces and content.
    """
    if not Lake.exists(root):
        return []
    found = rows(Lake(root).snapshot(), None, "listed").sources()
    return [PublishedSource(space, name, "sessions" if chats else "documents") for space, name, chats in found]


_PLAIN = [name for name in DocumentOutline._fields if name != "access"]
_OUTLINE = ", ".join((*_PLAIN, *_ACCESS))


def _outlines(connection: Connection, statement: str) -> Iterator[DocumentOutline]:
    known: dict[tuple[Any, ...], Access] = {}
    place = DocumentOutline._fields.index("access")
    for batch in _batches(connection, statement):
        columns = [column.to_pylist() for column in batch.columns]
        plain, told = columns[: len(_PLAIN)], columns[len(_PLAIN) :]
        accesses = []
        for visibility, org_id, user_id, tags in zip(*told, strict=True):
            key = (visibility, org_id, user_id, tuple(tags) if tags else ())
            if key not in known:
                known[key] = Access(*key)
            accesses.append(known[key])
        yield from map(DocumentOutline._make, zip(*plain[:place], accesses, *plain[place:], strict=True))


def _batches(connection: Connection, statement: str) -> Iterator[pa.RecordBatch]:
    with reading():
        yield from connection.sql(statement).to_arrow_reader(_BATCH)


def _chosen(values: Iterable[str]) -> pa.Table:
    left = iter(values)
    parts = []
    while len(part := pa.array(islice(left, _BATCH), pa.string())):
        parts.append(part)
    return pa.table({"value": pa.chunked_array(parts, pa.string())})


def _among(column: str, values: Iterable[str]) -> str:
    """Return the condition that a column has one of the values."""
    named = ", ".join(sorted(map(sql_string, values)))
    return f"{column} IN ({named})" if named else "false"


def _in_order(rows: Iterable[DocumentRow]) -> list[DocumentRow]:
    return sorted(rows, key=lambda row: (row.namespace, row.source, row.path))
