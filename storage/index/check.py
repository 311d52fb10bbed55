"""Compare the search index with the lake and report differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from parquetry.errors import StorageError, first_line
from parquetry.language.stems import stop_words
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, reading, rows, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.identities import identity_contents, weight_of
from parquetry.storage.index.open_index import read_all, spaces_of
from parquetry.storage.index.signatures import are_signatures_of, signature_columns
from parquetry.storage.index.tokens import CHUNK_HEADINGS, CHUNK_TOKENS, HEADING_EXTRA, tokenised
from parquetry.storage.index.views import VectorSpace
from parquetry.storage.index.words import stems_of
from parquetry.storage.lake import schema
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import scan

SAMPLE_CHUNKS = 500
"""chunks whose words and sign bits are recomputed"""
SAMPLE_DOCUMENTS = 500
"""documents whose identities are recomputed"""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference between the index and the lake."""

    what: str
    examples: tuple[str, ...]


def disagreements(
    snapshot: Snapshot, settings: SearchSettings, *, quick: bool = False
) -> tuple[int | None, list[Disagreement]]:
    """Compare the index with a version of the lake; change nothing.

    Args:
        snapshot: the newest snapshot.
        settings: give the location of the index.
        quick: True to skip reading data that need not be compared.

    Returns:
        Version of the index, None if there is none, and the differences; an index of an earlier version is not
        compared.
    """
    folder = IndexFolder(snapshot.layout, settings)
    newest = folder.newest()
    if newest is None or newest.version != snapshot.version:
        return (newest.version if newest else None), []
    opened = folder.open_version(snapshot)
    if opened is None:
        return newest.version, [Disagreement("the index cannot be read", (str(newest.path),))]
    try:
        with reading():
            if not quick:
                read_all(opened.connection)
            return opened.version, list(_compared(opened.connection, snapshot))
    except (StorageError, duckdb.Error) as error:
        return opened.version, [Disagreement("the index cannot be read", (str(newest.path), first_line(error)))]
    finally:
        opened.close()


def _compared(connection: Connection, snapshot: Snapshot) -> Iterator[Disagreement]:
    filesystem_at(snapshot.layout.root).attach(connection)
    for table in ("documents", "chunks"):
        connection.execute(f"CREATE TEMP VIEW lake_{table} AS {scan(table, snapshot.files[table])}")
    connection.execute(
        """CREATE TEMP TABLE lake_current AS SELECT * FROM (
            SELECT * FROM lake_documents
            QUALIFY row_number() OVER (PARTITION BY namespace, document_id ORDER BY sequence DESC) = 1
        ) WHERE NOT removed"""
    )
    columns = ", ".join(f'"{name}"' for name in schema.DOCUMENTS.names)
    for here, there in (("lake_current", "parts.documents"), ("parts.documents", "lake_current")):
        found = tuples(
            connection,
            f"SELECT path FROM (SELECT {columns} FROM {here} EXCEPT ALL SELECT {columns} FROM {there}) ORDER BY ALL",
        )
        if found:
            yield _disagreement(f"documents are in {here.split('_')[0].split('.')[0]} and not the same in both", found)
    spaces = spaces_of(connection)
    vectors = ", ".join(f"vector_{space.number}::FLOAT[]" for space in spaces)
    vector = f"coalesce({vectors})" if spaces else "NULL::FLOAT[]"
    mine = f"""SELECT revision, count(*) AS n, bit_xor(hash({_CHUNK}, {vector})) AS mark
        FROM parts.chunks SEMI JOIN parts.documents USING (doc) GROUP BY revision"""
    theirs = f"""SELECT revision, count(*) AS n, bit_xor(hash({_CHUNK}, vector)) AS mark
        FROM lake_chunks SEMI JOIN lake_current USING (revision) GROUP BY revision"""
    found = tuples(
        connection,
        f"""SELECT DISTINCT path FROM ({mine}) AS m FULL JOIN ({theirs}) AS t USING (revision)
        JOIN lake_current USING (revision) WHERE m.n IS DISTINCT FROM t.n OR m.mark IS DISTINCT FROM t.mark
        ORDER BY ALL""",
    )
    if found:
        yield _disagreement("documents have other chunks or vectors in the index", found)
    yield from _codes(connection, spaces)
    language = tuples(connection, "SELECT value FROM parts.meta WHERE key = 'language'")[0][0]
    yield from _words(connection, language)
    yield from _identities(connection, language)


_CHUNK = 'chunk_index, start, "end", kind, page, headings, text, tokens, text_hash, embedder'


def _codes(connection: Connection, spaces: Sequence[VectorSpace]) -> Iterator[Disagreement]:
    for space in spaces:
        sample = f"""SELECT c.chunk, c.doc, vector_{space.number} AS vector FROM parts.chunks AS c
            SEMI JOIN parts.documents USING (doc) WHERE vector_{space.number} IS NOT NULL
            ORDER BY hash(c.chunk) LIMIT {SAMPLE_CHUNKS}"""
        words = ", ".join(signature_columns(space.dimension))
        found = tuples(
            connection,
            f"""SELECT s.chunk, s.vector, [{words}] FROM ({sample}) AS s
            LEFT JOIN parts.codes_{space.number} AS k ON k.chunk = s.chunk AND k.doc = s.doc""",
        )
        if not found:
            continue
        vectors = np.array([vector for _, vector, _ in found], np.float32)
        absent = [0] * len(signature_columns(space.dimension))
        codes = np.array([absent if None in code else code for _, _, code in found], np.int64)
        right = are_signatures_of(codes, vectors)
        wrong = [
            (f"chunk {chunk}",)
            for (chunk, _, code), agrees in zip(found, right.tolist(), strict=True)
            if None in code or not agrees
        ]
        if wrong:
            yield _disagreement("chunks have sign bits that are not their vector's", wrong)


def _words(connection: Connection, language: str) -> Iterator[Disagreement]:
    """Compare the words of a sample, counted again."""
    sampled = rows(
        connection,
        f"""SELECT c.chunk, {CHUNK_TOKENS} AS tokens, tokens({CHUNK_HEADINGS}) AS headings
        FROM parts.chunks AS c SEMI JOIN parts.documents USING (doc) ORDER BY hash(c.chunk) LIMIT {SAMPLE_CHUNKS}""",
    )
    stored = tuples(
        connection,
        """SELECT p.chunk, list(t.stem), list(p.tf), any_value(p.length) FROM parts.postings AS p
        JOIN parts.terms AS t USING (term) WHERE p.chunk IN (SELECT unnest($1::INTEGER[])) GROUP BY p.chunk""",
        [[row["chunk"] for row in sampled]],
    )
    present = {chunk: (dict(zip(stems, counts, strict=True)), length) for chunk, stems, counts, length in stored}
    wrong = []
    for row in sampled:
        counted = Counter(stems_of(row["tokens"], language))
        for stem in stems_of(row["headings"], language):
            counted[stem] += HEADING_EXTRA
        expected = (counted, len(row["tokens"])) if counted else None
        if present.get(row["chunk"]) != expected:
            wrong.append((f"chunk {row['chunk']}",))
    if wrong:
        yield _disagreement("chunks have other words in the index than in their text", wrong)


def _identities(connection: Connection, language: str) -> Iterator[Disagreement]:
    """Compare the identities of a sample, made again; those of no document have one too many."""
    connection.execute(
        f"""CREATE TEMP TABLE sampled AS SELECT number, doc, filename, title, path FROM parts.documents
        ORDER BY hash(number) LIMIT {SAMPLE_DOCUMENTS}"""
    )
    connection.execute(f"CREATE TEMP TABLE contents AS {identity_contents('sampled')}")
    stops, counted = stop_words(language), defaultdict[int, Counter[tuple[str, str]]](Counter)
    for number, field, tokens in tuples(connection, tokenised("contents")):
        words = [word for word in tokens if word not in stops]
        counted[number].update((field, stem) for stem in stems_of(words, language))
    stored = tuples(
        connection,
        """SELECT document, list(stem), list(weight) FROM parts.identities JOIN parts.terms USING (term)
        WHERE document IN (SELECT number FROM sampled) GROUP BY document""",
    )
    present = {number: dict(zip(stems, map(np.float32, weights), strict=True)) for number, stems, weights in stored}
    found = tuples(connection, "SELECT number, path FROM sampled ORDER BY path")
    wrong = [(path,) for number, path in found if present.get(number, {}) != _weights(counted[number])]
    wrong += tuples(
        connection,
        "SELECT DISTINCT 'number ' || document FROM parts.identities ANTI JOIN parts.documents ON number = document",
    )
    if wrong:
        yield _disagreement("documents have other words in their identity than in their name, title and opening", wrong)


def _weights(counted: Mapping[tuple[str, str], int]) -> dict[str, np.float32]:
    """Return the weight of each stem in an identity.

    Args:
        counted: field and stem -> number of times.
    """
    fields: dict[str, dict[str, int]] = defaultdict(dict)
    for (field, stem), times in counted.items():
        fields[stem][field] = times
    return {stem: np.float32(weight_of(times)) for stem, times in fields.items()}


def _disagreement(what: str, found: Sequence[tuple[str, ...]]) -> Disagreement:
    return Disagreement(what, tuple(str(example) for example, *_ in found))
