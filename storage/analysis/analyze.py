"""Analyze a version of a corpus: facts on each document, documents that are alike, and their places on a map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquetry.analysis.near_duplicates import Sketch, groups, likenesses, similar_pairs, sketch
from parquetry.analysis.projection import clusters, project
from parquetry.errors import SettingsError
from parquetry.settings.sections import SearchSettings
from parquetry.storage.analysis.folder import newest_analysis, write_analysis
from parquetry.storage.database import Connection
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import connect_snapshot

MOST_COMPARED = 200_000
"""documents of a corpus above which their vectors are not compared: memory and time grow with their number, and its
square"""
_LITTLE = 200
"""characters of a page, or of a whole document without pages, that are little"""
_FACTS = f"""
SELECT d.document_id, d.namespace, d.revision, d.content_hash, d.embedder, d.characters, q.known_loss, q.pages,
    q.pages_without_text, q.pages_unread, q.pages_ocr, q.ocr_confidence, q.unmapped, q.cut,
    d.status = 'indexed' AND (coalesce(q.median_characters, d.characters) < {_LITTLE}
        AND (q.pages IS NOT NULL OR d.size > 20 * d.characters)) AS little_text,
    t.vector
FROM documents AS d LEFT JOIN quality AS q USING (revision) LEFT JOIN texts AS t USING (revision)
WHERE d.revision <> 0
ORDER BY d.namespace, d.document_id
"""
_READ = 100
"""texts that are in memory at a time"""

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The outcome of an analysis."""

    version: int
    documents: int
    incomplete: int
    """number of documents of which something is known to be missing or doubtful"""
    duplicates: int
    """number of documents with the same content as another"""
    near_duplicates: int
    """number of documents with nearly the same text as another"""
    placed: int
    """number of documents on the map"""
    notes: tuple[str, ...]
    """parts that were left out, and what to do"""
    is_new: bool
    """False if this version had been analyzed before"""


def analyze(snapshot: Snapshot, settings: SearchSettings, *, again: bool = False) -> Analysis:
    """Analyze a version of a corpus, unless that was done, and keep the outcome beside its search index.

    Args:
        snapshot: snapshot of the corpus.
        settings: give the location of the folder.
        again: analyze even if this version has been.

    Raises:
        StorageError: the corpus cannot be read, or the outcome not be written.
    """
    present = newest_analysis(snapshot.layout, settings)
    if present is not None and present.version >= snapshot.version and not again:
        return _summed(pq.read_table(present.path), present.version, (), is_new=False)
    with connect_snapshot(snapshot) as connection:
        found = connection.sql(_FACTS).to_arrow_table()
        table, notes = _compared(connection, found)
    write_analysis(snapshot.layout, settings, snapshot.version, table)
    return _summed(table, snapshot.version, notes, is_new=True)


def _compared(connection: Connection, found: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the facts with groups of documents that are alike, and their places."""
    count = found.num_rows
    near, share = np.full(count, -1, np.int32), np.full(count, np.nan, np.float32)
    places, cluster = np.full((count, 2), np.nan, np.float32), np.full(count, -1, np.int32)
    notes: list[str] = []
    rows, vectors, left_out = _vectors(found)
    if left_out:
        notes.append(f"{left_out} documents without a vector of the usual embedder are compared with none")
    if len(rows) > MOST_COMPARED:
        notes.append(f"documents are compared in corpora of at most {MOST_COMPARED:,}; this one has {len(rows):,}")
    elif len(rows):
        pairs = _of_other_content(found, rows, similar_pairs(vectors))
        alike = likenesses(pairs, _sketches(connection, found, rows, pairs))
        near[rows] = groups(alike, len(rows))
        for each in alike:
            for place in (rows[each.first], rows[each.second]):
                share[place] = np.fmax(share[place], each.share)
        try:
            places[rows], cluster[rows] = project(vectors), clusters(vectors)
        except SettingsError as error:
            notes.append(str(error))
    columns = {
        "near": pa.array(near, mask=near < 0),
        "near_share": pa.array(share, mask=np.isnan(share)),
        "x": pa.array(places[:, 0], mask=np.isnan(places[:, 0])),
        "y": pa.array(places[:, 1], mask=np.isnan(places[:, 1])),
        "cluster": pa.array(cluster, mask=cluster < 0),
    }
    table = found.drop_columns(["vector"])
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table, tuple(notes)


def _vectors(found: pa.Table) -> tuple[Rows, Matrix, int]:
    """Return the rows of documents with a vector of the usual embedder, their vectors, and the number of others."""
    embedders = found["embedder"].to_pylist()
    known = [each for each in set(embedders) if each is not None]
    usual = max(sorted(known), key=embedders.count, default=None)
    rows = np.array([row for row, each in enumerate(embedders) if usual is not None and each == usual], np.int64)
    taken = found["vector"].combine_chunks().take(pa.array(rows))
    flat = np.asarray(taken.flatten(), np.float32)
    if not len(rows) or len(flat) % len(rows):
        return np.array([], np.int64), np.zeros((0, 1), np.float32), found.num_rows
    vectors = flat.reshape(len(rows), -1)
    # A document without words has a vector of zeros.
    lengths = np.linalg.norm(vectors, axis=1)
    real = np.isfinite(lengths) & (lengths > 0)
    return rows[real], np.ascontiguousarray(vectors[real] / lengths[real, None]), found.num_rows - int(real.sum())


def _of_other_content(found: pa.Table, rows: Rows, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs of documents whose bytes differ: others are duplicates."""
    hashes = found["content_hash"].to_pylist()
    return [(one, other) for one, other in pairs if hashes[rows[one]] != hashes[rows[other]]]


def _sketches(
    connection: Connection, found: pa.Table, rows: Rows, pairs: Sequence[tuple[int, int]]
) -> dict[int, Sketch]:
    """Return sketches of the texts of documents that are compared, by place; texts are read in one pass."""
    revisions = found["revision"].to_pylist()
    places = {revisions[rows[place]]: place for pair in pairs for place in pair}
    cursor = connection.cursor()
    cursor.execute("SELECT revision, text FROM texts WHERE revision IN (SELECT unnest($1::BIGINT[]))", [list(places)])
    sketches: dict[int, Sketch] = {}
    while read := cursor.fetchmany(_READ):
        sketches |= {places[revision]: sketch(text) for revision, text in read}
    return sketches


def _summed(table: pa.Table, version: int, notes: tuple[str, ...], *, is_new: bool) -> Analysis:
    hashes = [each for each in table["content_hash"].to_pylist() if each]
    several = sum(count for count in Counter(hashes).values() if count > 1)
    return Analysis(
        version,
        table.num_rows,
        sum(bool(each) for each in table["known_loss"].to_pylist()),
        several,
        table.num_rows - table["near"].null_count,
        table.num_rows - table["x"].null_count,
        notes,
        is_new,
    )
