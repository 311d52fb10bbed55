"""Candidates of a migration: revisions with new chunks and vectors, invisible until a publish names them.

The candidate of a revision has a number that follows from it and from the migration (XOR with its mask). So what is
built is found again after a crash, in a compacted file, and for a document that was moved; and a document that changed
meanwhile has no candidate yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from parquetry.planning.rows import RunStamp
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.database import Connection, open_duckdb, reading, rows, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Table
from parquetry.storage.lake import schema
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.knowledge_views import IS_ENTRY
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import scan


@dataclass(frozen=True, slots=True)
class Target:
    """Embedder and chunk settings of one namespace after a migration; hashes as in fingerprints."""

    namespace: str
    embedder: str
    """id of the model"""
    embedding: str
    """hash of the embedding settings"""
    chunking_before: str
    """hash of the chunk settings before"""
    chunking: str
    """hash of the chunk settings"""


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """A revision without its candidate."""

    revision: int
    namespace: str
    document_id: str
    source: str
    uri: str
    title: str
    """empty if the document has none of its own"""
    media_type: str | None
    characters: int
    chunks: int
    entry: bool
    """True for a knowledge entry"""
    rechunk: bool
    """True if the text is divided anew, False if the stored chunks stay"""


@dataclass(frozen=True, slots=True)
class BuildAmount:
    """Amount that is left to embed, as far as it is known before."""

    documents: int
    chunks: int
    """chunks to write"""
    texts: int
    """different texts without a vector of the new model"""
    tokens: int
    """of these texts, as the model before counted them"""


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """Progress of a migration."""

    documents: int
    """documents and entries of the namespaces concerned that have text"""
    built: int
    """those whose candidate is there"""
    there: int
    """those that are as the migration wants them without it"""

    @property
    def left(self) -> int:
        """Documents and entries that are still to be built."""
        return self.documents - self.built - self.there


_CURRENT = f"""CREATE TEMP TABLE concerned AS
SELECT *, xor(revision, $1::BIGINT) AS candidate,
    rechunk OR embedder IS DISTINCT FROM wanted OR (NOT entry AND split_part(fingerprint, '-', 3) <> embedding) AS stale
FROM (
    SELECT h.namespace, document_id, sequence, revision, source, uri, title, filename, media_type, characters, chunks,
        tokens, h.embedder, fingerprint, t.embedder AS wanted, t.embedding, t.chunking, {IS_ENTRY} AS entry,
        NOT {IS_ENTRY} AND t.chunking <> t.chunking_before AND split_part(fingerprint, '-', 2) <> t.chunking
            AND (source <> '{UPLOADS}' OR split_part(fingerprint, '-', 2) = t.chunking_before) AS rechunk
    FROM (
        SELECT * FROM ({{history}})
        QUALIFY row_number() OVER (PARTITION BY namespace, document_id ORDER BY sequence DESC) = 1
    ) AS h JOIN targets AS t ON t.namespace = h.namespace
    WHERE revision <> 0 AND (NOT removed OR {IS_ENTRY})
)"""
"""Uploads may have a size of chunks of their own; it is not in the row, and those chunks stay. Entries that were
superseded may come back, and are built like the others."""
_HELD = """CREATE TEMP TABLE held_{table} AS
SELECT revision AS candidate, count(*) AS rows, sum({tokens})::BIGINT AS tokens FROM ({scan})
WHERE revision IN (SELECT candidate FROM concerned WHERE stale) GROUP BY revision"""
_BUILT = "(SELECT candidate FROM held_chunks SEMI JOIN held_texts USING (candidate))"
_UNBUILT = f"FROM concerned WHERE stale AND candidate NOT IN {_BUILT}"


class MigrationCandidates:
    """The documents that a migration concerns in one version of a corpus, and the candidates that are built.

    Args:
        connection: connection with the tables that `candidates_of` makes.
        snapshot: the version.
    """

    def __init__(self, connection: Connection, snapshot: Snapshot) -> None:
        self._connection = connection
        self.snapshot = snapshot

    @property
    def progress(self) -> BuildProgress:
        """Number of documents, and of those that are built."""
        ((documents, there, left),) = tuples(
            self._connection,
            f"""SELECT count(*), count(*) FILTER (NOT stale),
                count(*) FILTER (stale AND candidate NOT IN {_BUILT}) FROM concerned""",
        )
        return BuildProgress(documents, documents - there - left, there)

    @property
    def unbuilt(self) -> tuple[Unbuilt, ...]:
        """The revisions without a candidate; documents with the same content share one."""
        found = rows(
            self._connection,
            f"""SELECT DISTINCT ON (revision) revision, namespace, document_id, source, uri,
                CASE WHEN title IS DISTINCT FROM regexp_replace(filename, '(.)\\.[^.]*$', '\\1') THEN title ELSE '' END
                    AS title,
                media_type, characters, chunks, entry, rechunk {_UNBUILT} ORDER BY revision, document_id""",
        )
        return tuple(Unbuilt(**{**row, "title": row["title"] or ""}) for row in found)

    def held(self, table: Table) -> set[int]:
        """Return the candidates that a table holds; a killed build may have registered one table and not the other."""
        return {candidate for (candidate,) in tuples(self._connection, f"SELECT candidate FROM held_{table}")}

    def amount(self, size: int, overlap: int, *, in_tokens: bool) -> BuildAmount:
        """Return what is left to embed.

        Args:
            size: of chunks after the migration.
            overlap: of chunks after the migration.
            in_tokens: True if both count tokens.
        """
        chunks = scan("chunks", self.snapshot.files["chunks"])
        ((written, texts, tokens),) = tuples(
            self._connection,
            f"""WITH kept AS (
                SELECT text_hash, c.tokens, wanted FROM ({chunks}) AS c
                JOIN (SELECT DISTINCT revision, wanted {_UNBUILT} AND NOT rechunk) USING (revision)
            ), known AS (
                SELECT DISTINCT text_hash, embedder AS wanted FROM ({chunks})
                WHERE vector IS NOT NULL AND embedder IN (SELECT wanted FROM concerned)
            )
            SELECT (SELECT count(*) FROM kept), count(*), coalesce(sum(tokens), 0)::BIGINT FROM (
                SELECT text_hash, wanted, any_value(tokens) AS tokens FROM kept
                ANTI JOIN known USING (text_hash, wanted) GROUP BY ALL
            )""",
        )
        ((documents, _, divided, of_divided),) = tuples(
            self._connection,
            f"""SELECT count(*), 0, coalesce(sum(ceil(length / $1)) FILTER (rechunk), 0)::BIGINT,
                coalesce(sum(tokens * $2) FILTER (rechunk), 0)::BIGINT
            FROM (SELECT DISTINCT ON (revision) *, {"tokens" if in_tokens else "characters"} AS length {_UNBUILT})""",
            [size - overlap, size / (size - overlap)],
        )
        return BuildAmount(documents, written + divided, texts + divided, tokens + of_divided)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces with documents to switch."""
        found = tuples(self._connection, "SELECT DISTINCT namespace FROM concerned WHERE stale ORDER BY 1")
        return tuple(namespace for (namespace,) in found)

    def rows(self, sequences: Mapping[str, int], stamp: RunStamp) -> pa.Table:
        """Return the rows of `documents` that switch to the candidates; all of them have to be built.

        Args:
            sequences: namespace -> number of the publish.
            stamp: stamp of the run.
        """
        self._connection.register("numbers", _table({"namespace": list(sequences), "number": list(sequences.values())}))
        history = scan("documents", self.snapshot.files["documents"])
        changed = {
            "revision": "c.candidate",
            "embedder": "c.wanted",
            "fingerprint": """CASE WHEN c.entry THEN h.fingerprint ELSE concat_ws('-',
                split_part(h.fingerprint, '-', 1),
                CASE WHEN c.rechunk THEN c.chunking ELSE split_part(h.fingerprint, '-', 2) END, c.embedding) END""",
            "chunks": "b.rows",
            "tokens": "b.tokens",
            "sequence": "n.number",
            "run_id": "$1",
            "indexed_at": "$2::TIMESTAMPTZ",
        }
        columns = ", ".join(f'{changed.get(name, f"h.{name}")} AS "{name}"' for name in schema.DOCUMENTS.names)
        found: pa.Table = self._connection.sql(
            f"""SELECT {columns} FROM ({history}) AS h
            JOIN (SELECT * FROM concerned WHERE stale) AS c USING (namespace, document_id, sequence)
            JOIN held_chunks AS b USING (candidate) JOIN numbers AS n USING (namespace)""",
            params=[stamp.run_id, stamp.at],
        ).to_arrow_table()
        return found.cast(schema.DOCUMENTS)


def published_namespaces(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the namespaces with rows of documents or entries in a version of a corpus, by name."""
    if not snapshot.files["documents"]:
        return ()
    with open_duckdb() as connection, reading():
        filesystem_at(snapshot.layout.root).attach(connection)
        history = scan("documents", snapshot.files["documents"])
        return tuple(name for (name,) in tuples(connection, f"SELECT DISTINCT namespace FROM ({history}) ORDER BY 1"))


@contextmanager
def candidates_of(snapshot: Snapshot, mask: int, targets: Sequence[Target]) -> Iterator[MigrationCandidates]:
    """Yield what a migration concerns in a version of a corpus.

    Args:
        snapshot: the version.
        mask: mask of the migration.
        targets: one for each namespace concerned.

    Raises:
        DamagedCorpus: `documents` is damaged: it would be published again, and the damage could not be recognised.
        StorageError: the corpus cannot be read.
    """
    check_written(snapshot, "documents", snapshot.files["documents"])
    columns = ("namespace", "embedder", "embedding", "chunking_before", "chunking")
    with open_duckdb() as connection, reading():
        filesystem_at(snapshot.layout.root).attach(connection)
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("targets", _table({name: [getattr(each, name) for each in targets] for name in columns}))
        history = scan("documents", snapshot.files["documents"])
        connection.execute(_CURRENT.format(history=history), [mask])
        tables: tuple[tuple[Table, str], ...] = (("texts", "0"), ("chunks", "tokens"))
        for table, tokens in tables:
            held = scan(table, snapshot.files[table])
            connection.execute(_HELD.format(table=table, tokens=tokens, scan=held))
        yield MigrationCandidates(connection, snapshot)


def _table(columns: Mapping[str, list[str] | list[int]]) -> pa.Table:
    kinds = {"number": pa.int64()}
    return pa.table({name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()})
