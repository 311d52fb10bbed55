"""Read the texts and vectors that earlier runs stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquetry.errors import FilesGaveWay
from parquetry.model import Chunk
from parquetry.storage.database import Connection, open_duckdb, reading, sql_list, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.added_texts import AddedTexts
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.shards import StoredText, parse_structure
from parquetry.storage.lake.text_shards import ShardsOfTexts, TextDirectory
from parquetry.storage.lake.trust import FILE, Trust
from parquetry.storage.replaced_files import reread

Vector = npt.NDArray[np.float32]
_LONGEST = 1e4
"""upper bound of a vector's length; vectors have a length of about 1, and a longer one than this is damaged"""
_FEW_SHARDS = 4
"""shards that are read rather than looked up"""


def chunk_shards(layout: Layout, run_id: str) -> list[str]:
    """Return the chunk shards that the processes of a run have written so far, registered or not."""
    names = (entry.name for entry in filesystem_at(layout.root).entries(layout.table("chunks")))
    return [
        layout.shard("chunks", name) for name in names if name.startswith(f"{run_id}-") and name.endswith(".parquet")
    ]


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


_STORED: tuple[Table, ...] = ("chunks", "texts", "notes")


def _wanted(column: str, kind: pa.DataType, values: Iterable[object]) -> pa.Table:
    return pa.table({column: pa.array(list(dict.fromkeys(values)), kind)})


class Stored:
    """The texts and vectors that earlier runs stored, by revision and by text hash. Safe to use from several threads.

    Args:
        snapshot: the version that the run started from; None for an empty corpus.
        orphans: chunk shards that no commit names, as found by `Lake.orphans`.
        newest: returns both anew if files of the snapshot have been replaced.
        directory: tells which shards of the snapshot hold a text; None to read all of them.
    """

    def __init__(
        self,
        snapshot: Snapshot | None = None,
        orphans: Sequence[str] = (),
        newest: Callable[[], tuple[Snapshot, Sequence[str]]] | None = None,
        directory: TextDirectory | None = None,
    ) -> None:
        self._added = AddedTexts()
        self._newest = newest
        self._directory = directory
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
        self,
        table: Table,
        query: str,
        wanted: pa.Table,
        *parameters: object,
        chosen: Callable[[Sequence[str]], Sequence[str]] = lambda files: files,
    ) -> pa.Table | None:
        """Query the intact shards of a table; use the newest snapshot if files have been replaced.

        Args:
            table: the table to query.
            query: SQL over `{shards}` and `wanted`; each row of its result has a `FILE`.
            wanted: values to look up; without any, nothing is read.
            *parameters: parameters of the query.
            chosen: returns the shards to query instead of those of the snapshot.

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
                return self._trust[table].read(chosen(self._files[table]), ask)
            except FilesGaveWay:
                if self._newest is not None:
                    self._take(*self._newest())
                raise

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
        keys = list(text_hashes)
        self._trust["chunks"].add(file)
        with self._lock:
            self._added.add(file, keys)

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
        added = self._added.files_of(keys)
        told = self._shards_of(keys)
        # A text that many shards hold is in the newest of them, mostly with its neighbours.
        found = self._vectors(keys, embedder, lambda files: (*told.newest(files), *added))
        left = [key for key in keys if key not in found and len(told.by_text.get(key, ())) > 1]
        return found | self._vectors(left, embedder, told.all)

    def _shards_of(self, text_hashes: Sequence[str]) -> ShardsOfTexts:
        files = self._files["chunks"]
        if self._directory is None or not text_hashes or len(files) <= _FEW_SHARDS:
            return ShardsOfTexts()
        with self._cursor(files[0]) as cursor:
            return self._directory.shards_of(cursor, text_hashes)

    def _vectors(
        self, text_hashes: Sequence[str], embedder: str, chosen: Callable[[Sequence[str]], Sequence[str]]
    ) -> dict[str, StoredVector]:
        found = self._find(
            "chunks",
            f"""SELECT text_hash, arg_min(vector, {FILE}) AS vector, arg_min(tokens, {FILE}) AS tokens,
                min({FILE}) AS {FILE}
            FROM {{shards}} SEMI JOIN wanted USING (text_hash)
            WHERE embedder = $1 AND vector IS NOT NULL GROUP BY text_hash""",
            _wanted("text_hash", pa.string(), text_hashes),
            embedder,
            chosen=chosen,
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
