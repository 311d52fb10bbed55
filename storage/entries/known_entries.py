"""The live entries of given scopes and a nearest-neighbour lookup among them."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.model import Access
from parquetry.process_folder import process_folder
from parquetry.sessions.ledger.entry_rows import EntryScope
from parquetry.sessions.model import Entry
from parquetry.storage.database import Connection, reading, sql_list, sql_string, tuples
from parquetry.storage.files.layout import holds_entries
from parquetry.storage.lake.knowledge_views import ENTRY_COLUMNS, ENTRY_TEXTS, IS_ENTRY
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import connect_snapshot

Vectors = npt.NDArray[np.float32]
MEMORY = "256MB"
"""memory that DuckDB uses before it spills to disk"""
SCORES_AT_A_TIME = 4_000_000
"""pairs of vector and entry that are compared in one step"""
MOST_ENTRIES_AT_A_TIME = 8192


class KnownEntries:
    """The live entries of one version of a corpus, in some scopes. Safe to use from several threads.

    Their vectors are copied once, scope by scope, into a temporary file: the cost of a comparison depends on the size
    of the scope alone, and no rows of documents are read.

    Args:
        snapshot: the version to read.
        scopes: the scopes that will be queried.

    Raises:
        StorageError: the corpus cannot be read.
    """

    def __init__(self, snapshot: Snapshot, scopes: Collection[EntryScope]) -> None:
        self._numbers = {scope: number for number, scope in enumerate(sorted(scopes, key=lambda each: each.sort_key))}
        self._lock = threading.Lock()
        with ExitStack() as opened:
            folder = opened.enter_context(tempfile.TemporaryDirectory(dir=process_folder()))
            self._connection = opened.enter_context(connect_snapshot(snapshot))
            with reading():
                self._copy(snapshot, Path(folder))
            self._opened = opened.pop_all()

    def _copy(self, snapshot: Snapshot, folder: Path) -> None:
        run = self._connection.execute
        run(f"SET memory_limit = '{MEMORY}'")
        run(f"SET temp_directory = {sql_string(str(folder / 'spill'))}")
        run(f"ATTACH {sql_string(str(folder / 'known.duckdb'))} AS known")
        run(
            "CREATE TABLE known.scopes (scope INTEGER, namespace VARCHAR, visibility VARCHAR, org VARCHAR, who VARCHAR)"
        )
        if self._numbers:
            values = [
                [number, scope.namespace, scope.visibility, scope.org_id, scope.user_id]
                for scope, number in self._numbers.items()
            ]
            self._connection.executemany("INSERT INTO known.scopes VALUES ($1, $2, $3, $4, $5)", values)
        run(
            f"""CREATE TABLE known.live AS SELECT s.scope, p.embedder, p.revision, {ENTRY_COLUMNS}
            FROM published AS p JOIN known.scopes AS s
            ON s.namespace = p.namespace AND s.visibility = p.visibility AND s.org IS NOT DISTINCT FROM p.org_id
                AND s.who IS NOT DISTINCT FROM p.user_id
            JOIN {ENTRY_TEXTS} AS t ON t.namespace = p.namespace AND t.entry_id = p.document_id
            WHERE {IS_ENTRY} ORDER BY s.scope, p.document_id"""
        )
        run("CREATE TABLE known.found (revision BIGINT, vector FLOAT[])")
        files = snapshot.files["chunks"]
        marked = [file for file in files if holds_entries(file)]
        # The entries of a file that was rewritten under another name are still found, but more slowly.
        for some in (marked, [file for file in files if not holds_entries(file)]):
            missing = "SELECT revision FROM known.live ANTI JOIN known.found USING (revision)"
            if some and tuples(self._connection, f"{missing} LIMIT 1"):
                run(
                    f"""INSERT INTO known.found SELECT revision, vector FROM read_parquet({sql_list(some)})
                    SEMI JOIN ({missing}) USING (revision)"""
                )
        run(
            """CREATE TABLE known.vectors AS
            SELECT scope, embedder, row_number() OVER (PARTITION BY scope, embedder ORDER BY entry_id) - 1 AS place,
                entry_id, vector
            FROM known.live JOIN known.found USING (revision) WHERE vector IS NOT NULL
            ORDER BY scope, embedder, place"""
        )

    def candidates(
        self, scope: EntryScope, vectors: Vectors, embedder: str, limit: int, at_least: float
    ) -> list[list[tuple[Entry, float]]]:
        """Return the live entries of a scope that are nearest to each of the given vectors.

        Args:
            scope: one of the scopes passed to the constructor.
            vectors: float32[n, dimension], of any length; a zero row is near nothing.
            embedder: id of the model behind the vectors; entries embedded by another model are not compared (see
                `stale`).
            limit: maximum number of entries for each vector.
            at_least: minimum cosine.

        Returns:
            For each vector, entries with their cosine, best first; ties in the order of their ids.
        """
        best: list[list[tuple[float, str]]] = [[] for _ in vectors]
        wanted = _unit(vectors)
        for entry_ids, known in self._blocks(scope, embedder, len(vectors)):
            scores = np.round((wanted @ _unit(known).T).astype(np.float64), 6)
            for i, row in enumerate(scores):
                near = np.flatnonzero(row >= at_least)
                if len(near) > limit:
                    near = near[row[near] >= np.partition(row[near], -limit)[-limit]]
                merged = best[i] + [(-float(row[j]), entry_ids[j]) for j in near.tolist()]
                best[i] = sorted(merged)[:limit]
        entries = self.entries(scope, {entry_id for found in best for _, entry_id in found})
        return [[(entries[entry_id], -score) for score, entry_id in found] for found in best]

    def _blocks(self, scope: EntryScope, embedder: str, count: int) -> Iterator[tuple[list[str], Vectors]]:
        """Yield ids and vectors of a scope in blocks that fit the memory allowed."""
        size = max(1, min(MOST_ENTRIES_AT_A_TIME, SCORES_AT_A_TIME // max(1, count)))
        start = 0
        with self._session() as session:
            while count:
                found = tuples(
                    session,
                    """SELECT entry_id, vector FROM known.vectors
                    WHERE scope = $1 AND embedder = $2 AND place >= $3 AND place < $4 ORDER BY place""",
                    [self._numbers[scope], embedder, start, start + size],
                )
                if found:
                    yield [entry_id for entry_id, _ in found], np.array([vector for _, vector in found], np.float32)
                if len(found) < size:
                    return
                start += size

    def entries(self, scope: EntryScope, entry_ids: Collection[str] | None = None) -> dict[str, Entry]:
        """Return live entries of a scope by id.

        Args:
            scope: one of the scopes passed to the constructor.
            entry_ids: only these, if they are live; None for all entries of the scope.
        """
        condition = "" if entry_ids is None else " AND entry_id IN (SELECT unnest($2::VARCHAR[]))"
        values: list[Any] = [self._numbers[scope]]
        return self._entries(f"scope = $1{condition}", values if entry_ids is None else [*values, sorted(entry_ids)])

    def stale(self, namespace: str, embedder: str) -> list[Entry]:
        """Return live entries of a namespace in these scopes with vectors of another model, to be embedded again."""
        return list(self._entries("namespace = $1 AND embedder <> $2", [namespace, embedder]).values())

    def _entries(self, condition: str, values: Sequence[Any]) -> dict[str, Entry]:
        told = "entry_id, namespace, kind, text, confidence, valid_from, visibility, org_id, user_id, tags"
        with self._session() as session:
            found = tuples(session, f"SELECT {told} FROM known.live WHERE {condition} ORDER BY entry_id", values)
        return {
            entry_id: Entry(
                entry_id=entry_id,
                namespace=namespace,
                kind=kind,
                text=text,
                access=Access(visibility, org_id, user_id, tuple(tags or ())),
                confidence=confidence,
                valid_from=valid_from.astimezone(UTC),
            )
            for entry_id, namespace, kind, text, confidence, valid_from, visibility, org_id, user_id, tags in found
        }

    def _session(self) -> Connection:
        with self._lock:
            return self._connection.cursor()

    def close(self) -> None:
        """Delete the temporary file."""
        with self._lock:
            self._opened.close()

    def __enter__(self) -> KnownEntries:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
