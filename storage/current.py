"""Reads what a run has to know of a corpus: current rows, stored texts, vectors that exist already."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from knowledge.model import DocumentRow
from storage import schema
from storage.database import Connection, each_row, open_duckdb, reading, rows, sql_list
from storage.knowledge_views import IS_DOCUMENT, IS_KNOWLEDGE
from storage.lake import Snapshot
from storage.places import files_at
from storage.shards import StoredText, parse_structure
from storage.snapshot_views import scan

Vector = npt.NDArray[np.float32]


Content = Literal["documents", "knowledge", "all"]
"""documents; entries, sessions and files of sessions; or all rows"""
_CONTENT: Mapping[Content, str] = {"documents": IS_DOCUMENT, "knowledge": IS_KNOWLEDGE, "all": "true"}

_CURRENT = """WITH history AS NOT MATERIALIZED ({history})
SELECT * FROM history WHERE NOT removed AND {wanted} AND (namespace, document_id, sequence) IN (
    SELECT namespace, document_id, max(sequence) FROM history GROUP BY ALL
)"""


def current_rows(
    snapshot: Snapshot, namespaces: Iterable[str] | None = None, what: Content = "documents"
) -> list[DocumentRow]:
    """The current, not removed rows of `documents`.

    Args:
        snapshot: which version.
        namespaces: only these; None for all.
        what: rows of what.
    """
    if not snapshot.files["documents"]:
        return []
    wanted = _CONTENT[what]
    if namespaces is not None:
        wanted += f" AND list_contains({sql_list(namespaces)}, namespace)"
    with open_duckdb() as connection:
        files_at(snapshot.layout.root).lend(connection)
        # Each thread holds rows of its own in memory, and making objects of them takes longer than reading them.
        connection.execute("SET threads = 1")
        made = schema.DocumentRows()
        history = scan("documents", snapshot.files["documents"])
        current = [made.row(values) for values in each_row(connection, _CURRENT.format(history=history, wanted=wanted))]
    current.sort(key=lambda row: (row.namespace, row.source, row.path))
    return current


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector that was computed before, and what it cost then."""

    vector: Vector
    """float32[dimension]"""
    tokens: int


class Stored:
    """What earlier runs stored, by revision and by text hash. Safe to use from several threads.

    Args:
        snapshot: the version that the run started from; None for nothing.
        orphans: shards of chunks that no commit names, as `Lake.orphans` found them.
    """

    def __init__(self, snapshot: Snapshot | None = None, orphans: Sequence[str] = ()) -> None:
        self._chunk_files = [*(snapshot.files["chunks"] if snapshot else ()), *orphans]
        self._text_files = snapshot.files["texts"] if snapshot else ()
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def _cursor(self, file: str) -> Connection:
        """A connection that reads files of the place of this one."""
        with self._lock:
            if self._connection is None:
                self._connection = open_duckdb()
                files_at(file).lend(self._connection)
            return self._connection.cursor()

    def add_chunks(self, file: str) -> None:
        """Look into one more shard of chunks from now on."""
        self._chunk_files.append(file)

    def vectors(self, text_hashes: Iterable[str], embedder: str) -> dict[str, StoredVector]:
        """The vectors of those texts that were embedded before.

        Args:
            text_hashes: of the texts as they go to the embedder.
            embedder: id of the model; vectors of any other are not returned.
        """
        wanted = sorted(set(text_hashes))
        files = tuple(self._chunk_files)
        if not wanted or not files:
            return {}
        with self._cursor(files[0]) as cursor:
            cursor.register("wanted", pa.table({"text_hash": pa.array(wanted, pa.string())}))
            with reading():
                found: pa.Table = cursor.sql(
                    f"""SELECT text_hash, any_value(vector) AS vector, any_value(tokens) AS tokens
                    FROM read_parquet({sql_list(files)}) SEMI JOIN wanted USING (text_hash)
                    WHERE embedder = $1 AND vector IS NOT NULL GROUP BY text_hash""",
                    params=[embedder],
                ).to_arrow_table()
        if not found.num_rows:
            return {}
        column = found.column("vector").combine_chunks()
        matrix = np.asarray(column.values, dtype=np.float32).reshape(found.num_rows, -1)
        keys, tokens = found.column("text_hash").to_pylist(), found.column("tokens").to_pylist()
        return {key: StoredVector(matrix[i], tokens[i]) for i, key in enumerate(keys)}

    def texts(self, revisions: Iterable[int]) -> dict[int, StoredText]:
        """The stored texts of some revisions; a revision that is not stored is missing."""
        wanted = sorted(set(revisions))
        if not wanted or not self._text_files:
            return {}
        with self._cursor(self._text_files[0]) as cursor:
            found = rows(
                cursor,
                f"""SELECT revision, text, structure FROM read_parquet({sql_list(self._text_files)})
                WHERE list_contains($1, revision)""",
                [wanted],
            )
        return {
            row["revision"]: StoredText(row["revision"], row["text"], *parse_structure(row["structure"]))
            for row in found
        }

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
