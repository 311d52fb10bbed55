"""Read the state that a run needs: current rows, stored texts and existing vectors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquetry.errors import FilesGaveWay
from parquetry.model import TRANSCRIPTS_TYPE, Chunk, DocumentRow
from parquetry.sources.registry import PublishedSource
from parquetry.storage.database import Connection, each_row, open_duckdb, reading, sql_list, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake import schema
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_KNOWLEDGE
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.shards import StoredText, parse_structure
from parquetry.storage.lake.snapshot_views import scan
from parquetry.storage.lake.trust import FILE, Trust
from parquetry.storage.replaced_files import reread

Vector = npt.NDArray[np.float32]


Content = Literal["documents", "knowledge", "all"]
"""documents; entries, sessions and files of sessions; or all rows"""
_CONTENT: Mapping[Content, str] = {"documents": IS_DOCUMENT, "knowledge": IS_KNOWLEDGE, "all": "true"}

_LONGEST = 1e4
"""upper bound of a vector's length; vectors have a length of about 1, and a longer one than this is damaged"""
_CURRENT = """WITH history AS NOT MATERIALIZED (SELECT * FROM ({history}) WHERE {told})
SELECT * FROM history WHERE NOT removed AND {wanted} AND (namespace, document_id, sequence) IN (
    SELECT namespace, document_id, max(sequence) FROM history GROUP BY ALL
)"""


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
        self._is_checked = False
        self._history = "true" if namespaces is None else f"list_contains({sql_list(namespaces)}, namespace)"
        self._wanted = _CONTENT[what]

    def each(self) -> Iterator[DocumentRow]:
        """Yield all rows in arbitrary order, a few in memory at a time."""
        return self._read(self._history, self._wanted)

    def all(self) -> list[DocumentRow]:
        """Return all rows, ordered by namespace, source and path."""
        return _in_order(self.each())

    def named(self, document_ids: Iterable[str]) -> list[DocumentRow]:
        """Return the rows of the given documents, ordered by namespace, source and path."""
        return self._chosen(document_ids, f"{self._history} AND document_id IN (FROM chosen)", self._wanted)

    def holding(self, content_hashes: Iterable[str]) -> list[DocumentRow]:
        """Return the rows with one of the given content hashes, ordered by namespace, source and path."""
        return self._chosen(content_hashes, self._history, f"{self._wanted} AND content_hash IN (FROM chosen)")

    def _chosen(self, values: Iterable[str], history: str, wanted: str) -> list[DocumentRow]:
        chosen = pa.table({"value": pa.array(sorted(set(values)), pa.string())})
        return _in_order(self._read(history, wanted, chosen)) if chosen.num_rows else []

    def _read(self, history: str, wanted: str, chosen: pa.Table | None = None) -> Iterator[DocumentRow]:
        if self._snapshot is None or not self._snapshot.files["documents"]:
            return
        files = self._snapshot.files["documents"]
        if not self._is_checked:
            # Damaged rows would be published again, and the damage could no longer be recognised.
            check_written(self._snapshot, "documents", files)
            self._is_checked = True
        shards = scan("documents", files)
        with open_duckdb() as connection:
            filesystem_at(self._snapshot.layout.root).attach(connection)
            if chosen is not None:
                connection.register("chosen", chosen)
            # Each thread holds rows of its own in memory, and converting them to objects takes longer than reading
            # them.
            connection.execute("SET threads = 1")
            made = schema.DocumentRows()
            for values in each_row(connection, _CURRENT.format(history=shards, told=history, wanted=wanted)):
                yield made.row(values)


def published_sources(root: str) -> list[PublishedSource]:
    """Return the sources with documents or session files in a corpus; empty for a corpus that does not exist yet.

    Args:
        root: root of the corpus.
    """
    if not Lake.exists(root):
        return []
    snapshot = Lake(root).snapshot()
    if not snapshot.files["documents"]:
        return []
    sessions = f"coalesce(media_type = '{TRANSCRIPTS_TYPE}', false)"
    wanted = f"({IS_DOCUMENT} OR {sessions})"
    current = _CURRENT.format(history=scan("documents", snapshot.files["documents"]), told="true", wanted=wanted)
    with open_duckdb() as connection:
        filesystem_at(snapshot.layout.root).attach(connection)
        found = tuples(connection, f"SELECT DISTINCT namespace, source, {sessions} FROM ({current}) ORDER BY ALL")
    return [PublishedSource(space, name, "sessions" if chats else "documents") for space, name, chats in found]


def chunk_shards(layout: Layout, run_id: str) -> list[str]:
    """Return the chunk shards that the processes of a run have written so far, registered or not."""
    names = (entry.name for entry in filesystem_at(layout.root).entries(layout.table("chunks")))
    return [
        layout.shard("chunks", name) for name in names if name.startswith(f"{run_id}-") and name.endswith(".parquet")
    ]


def _in_order(rows: Iterable[DocumentRow]) -> list[DocumentRow]:
    return sorted(rows, key=lambda row: (row.namespace, row.source, row.path))


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector that was computed before, and its cost at the time."""

    vector: Vector
    """float32[dimension]"""
    tokens: int


def _stored_vectors(found: pa.Table) -> dict[str, StoredVector]:
    """Return vectors of rows with text hash, vector and tokens, without values that no model returns."""
    if not found.num_rows:
        return {}
    column = found.column("vector").combine_chunks()
    matrix = np.asarray(column.values, dtype=np.float32).reshape(found.num_rows, -1)
    keys, tokens = found.column("text_hash").to_pylist(), found.column("tokens").to_pylist()
    # Files of earlier programs have no checksums.
    with np.errstate(over="ignore"):
        credible = np.linalg.norm(matrix, axis=1) < _LONGEST
    return {key: StoredVector(matrix[i], tokens[i]) for i, key in enumerate(keys) if credible[i]}


def _beginning(text_hash: str) -> int:
    """Return the first 60 bits of a hash; a third of the memory of the text."""
    return int(text_hash[:15], 16)


_STORED: tuple[Table, ...] = ("chunks", "texts", "notes")


def _wanted(column: str, kind: pa.DataType, values: Iterable[object]) -> pa.Table:
    return pa.table({column: pa.array(list(dict.fromkeys(values)), kind)})


class Stored:
    """The texts and vectors that earlier runs stored, by revision and by text hash. Safe to use from several threads.

    Args:
        snapshot: the version that the run started from; None for an empty corpus.
        orphans: chunk shards that no commit names, as found by `Lake.orphans`.
        newest: returns both anew if files of the snapshot have been replaced.
    """

    def __init__(
        self,
        snapshot: Snapshot | None = None,
        orphans: Sequence[str] = (),
        newest: Callable[[], tuple[Snapshot, Sequence[str]]] | None = None,
    ) -> None:
        self._added: dict[int, str] = {}
        """beginning of a text hash -> chunk shard of this run that holds it"""
        self._newest = newest
        self._trust = {table: Trust(snapshot.layout if snapshot else None, table) for table in _STORED}
        self._files: dict[Table, Sequence[str]] = {}
        self._take(snapshot, orphans)
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def _take(self, snapshot: Snapshot | None, orphans: Sequence[str]) -> None:
        for table in _STORED:
            self._files[table] = snapshot.files[table] if snapshot else ()
        self._files["chunks"] = (*self._files["chunks"], *orphans)

    def _find(
        self, table: Table, query: str, wanted: pa.Table, *parameters: object, added: Iterable[str] = ()
    ) -> pa.Table | None:
        """Query the intact shards of a table; use the newest snapshot if files have been replaced.

        Args:
            table: the table to query.
            query: SQL over `{shards}` and `wanted`; each row of its result has a `FILE`.
            wanted: values to look up; without any, nothing is read.
            *parameters: parameters of the query.
            added: shards of this run to query, too.

        Returns:
            The result of the query; None if there is nothing to look up, or nowhere to look.
        """

        def ask(files: Sequence[str]) -> pa.Table:
            with self._cursor(files[0]) as cursor, reading():
                cursor.register("wanted", wanted)
                shards = f"read_parquet({sql_list(files)}, filename = '{FILE}')"
                return cursor.sql(query.format(shards=shards), params=parameters).to_arrow_table()

        def find() -> pa.Table | None:
            try:
                return self._trust[table].read((*self._files[table], *added), ask)
            except FilesGaveWay:
                if self._newest is not None:
                    self._take(*self._newest())
                raise

        added = sorted(set(added))
        return reread(find) if wanted.num_rows else None

    def _cursor(self, file: str) -> Connection:
        """Open a connection that can read files of the same place as this one."""
        with self._lock:
            if self._connection is None:
                self._connection = open_duckdb()
                filesystem_at(file).attach(self._connection)
            return self._connection.cursor()

    def add_chunks(self, file: str, text_hashes: Iterable[str]) -> None:
        """Add a chunk shard that has just been written to the ones that are searched.

        A run writes a shard for each of its batches: searching all of them for each batch would cost their square.

        Args:
            file: the shard.
            text_hashes: hashes of the texts in it; the shard is searched for these only.
        """
        self._trust["chunks"].add(file)
        self._added.update((_beginning(key), file) for key in text_hashes)

    def add_shard(self, file: str) -> None:
        """Add a chunk shard that another process of the run has written, as `add_chunks` does."""
        with self._cursor(file) as cursor, reading():
            found = tuples(cursor, f"SELECT text_hash FROM read_parquet({sql_list([file])})")
        self.add_chunks(file, (key for (key,) in found))

    def vectors(self, text_hashes: Iterable[str], embedder: str) -> dict[str, StoredVector]:
        """Return the stored vectors of texts that were embedded before.

        Args:
            text_hashes: hashes of the texts as sent to the embedder.
            embedder: id of the model; vectors of any other are not returned.
        """
        keys = list(text_hashes)
        found = self._find(
            "chunks",
            f"""SELECT text_hash, arg_min(vector, {FILE}) AS vector, arg_min(tokens, {FILE}) AS tokens,
                min({FILE}) AS {FILE}
            FROM {{shards}} SEMI JOIN wanted USING (text_hash)
            WHERE embedder = $1 AND vector IS NOT NULL GROUP BY text_hash""",
            _wanted("text_hash", pa.string(), keys),
            embedder,
            added=(self._added[key] for key in map(_beginning, keys) if key in self._added),
        )
        return {} if found is None else _stored_vectors(found)

    def texts(self, revisions: Iterable[int]) -> dict[int, StoredText]:
        """Return the stored texts of the given revisions; a revision that is not stored, or damaged, is missing."""
        found = self._find(
            "texts",
            f"SELECT revision, text, structure, {FILE} FROM {{shards}} SEMI JOIN wanted USING (revision)",
            _wanted("revision", pa.int64(), revisions),
        )
        return {
            row["revision"]: StoredText(row["revision"], row["text"], *parse_structure(row["structure"]))
            for row in (found.to_pylist() if found else ())
        }

    def chunks(self, revisions: Iterable[int]) -> dict[int, tuple[Chunk, ...]]:
        """Return the stored chunks of the given revisions, in order; a revision that is not stored is missing."""
        found = self._find(
            "chunks",
            f"""SELECT DISTINCT ON (revision, chunk_index) revision, chunk_index, start, "end", kind, page, headings,
                {FILE}
            FROM {{shards}} SEMI JOIN wanted USING (revision) ORDER BY revision, chunk_index""",
            _wanted("revision", pa.int64(), revisions),
        )
        chunks: dict[int, list[Chunk]] = {}
        for row in found.to_pylist() if found else ():
            headings = tuple(row["headings"] or ())
            chunk = Chunk(row["chunk_index"], row["start"], row["end"], row["kind"], row["page"], headings)
            chunks.setdefault(row["revision"], []).append(chunk)
        return {revision: tuple(held) for revision, held in chunks.items()}

    def notes(self, revisions: Iterable[int], stage: str) -> dict[int, tuple[str, ...]]:
        """Return the notes on the given revisions at a stage; a revision without a note is missing."""
        found = self._find(
            "notes",
            f"SELECT revision, note, {FILE} FROM {{shards}} SEMI JOIN wanted USING (revision) WHERE stage = $1",
            _wanted("revision", pa.int64(), revisions),
            stage,
        )
        noted: dict[int, list[str]] = {}
        for row in found.to_pylist() if found else ():
            noted.setdefault(row["revision"], []).append(row["note"])
        return {revision: tuple(sorted(notes)) for revision, notes in noted.items()}

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
