"""Analyze a version of a corpus: facts on each document, documents that are alike, and their places on a map."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquetry.analysis.one_thread import one_thread
from parquetry.analysis.projection import Labels, Matrix, add_places, add_to_clusters, clusters, project
from parquetry.analysis.similar_vectors import MOST_PAIRS
from parquetry.errors import SettingsError
from parquetry.settings.sections import SearchSettings
from parquetry.storage.analysis.alike import Likenesses, find_alike
from parquetry.storage.analysis.course import DRAWING, FACTS, Look, check_of, no_look
from parquetry.storage.analysis.earlier import CHANGED, Earlier, earlier
from parquetry.storage.analysis.facts import CorpusFacts, read_facts
from parquetry.storage.analysis.folder import newest_analysis, write_analysis
from parquetry.storage.database import Connection
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import connect_snapshot

MOST_COMPARED = 200_000
"""documents of a corpus above which their vectors are not compared: memory grows with their number"""


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


def analyze(snapshot: Snapshot, settings: SearchSettings, *, again: bool = False, look: Look = no_look) -> Analysis:
    """Analyze a version of a corpus, unless that was done, and keep the outcome beside its search index.

    What an earlier analysis found about documents that have not changed is kept, as long as few have.

    Args:
        snapshot: snapshot of the corpus.
        settings: give the location of the folder.
        again: analyze even if this version has been, and compare and place all documents.
        look: called while it works; raises to end it.

    Raises:
        StorageError: the corpus cannot be read, or the outcome not be written.
    """
    present = newest_analysis(snapshot.layout, settings)
    if present is not None and present.version >= snapshot.version and not again:
        return _summed(pq.read_table(present.path), present.version, (), is_new=False)
    look(FACTS)
    with connect_snapshot(snapshot) as connection, one_thread():
        facts = read_facts(connection)
        before = None if again else earlier(present, facts)
        table, notes = _compared(connection, facts, before, look)
    write_analysis(snapshot.layout, settings, snapshot.version, table)
    return _summed(table, snapshot.version, notes, is_new=True)


def _compared(
    connection: Connection, facts: CorpusFacts, before: Earlier | None, look: Look
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the facts with groups of documents that are alike, and their places."""
    notes: list[str] = []
    if facts.left_out:
        notes.append(f"{facts.left_out} documents without a vector of the usual embedder are compared with none")
    count = facts.table.num_rows
    alike = Likenesses(np.full(count, -1, np.int32), np.full(count, np.nan, np.float32), facts.rows[:0], (), cut=False)
    places, cluster = np.full((count, 2), np.nan, np.float32), np.full(count, -1, np.int32)
    if len(facts.rows) > MOST_COMPARED:
        number = f"{len(facts.rows):,}"
        notes.append(f"documents are compared in corpora of at most {MOST_COMPARED:,}; this one has {number}")
    elif len(facts.rows):
        alike = find_alike(connection, facts, before, look)
        if alike.cut:
            notes.append(f"only the {MOST_PAIRS:,} most similar pairs of documents were compared by their words")
        try:
            places[facts.rows], cluster[facts.rows] = _placed(facts, before, look)
        except SettingsError as error:
            notes.append(str(error))
    table = facts.table
    for name, values in {**_alike_columns(facts, alike), **_place_columns(places, cluster)}.items():
        table = table.append_column(name, values)
    return table.replace_schema_metadata({CHANGED: str(before.changed if before else 0)}), tuple(notes)


def _placed(facts: CorpusFacts, before: Earlier | None, look: Look) -> tuple[Matrix, Labels]:
    """Return place and cluster of each vector; those that were placed before stay where they are."""
    check = check_of(look, DRAWING)
    check()
    if before is not None:
        known = [before.column(name, facts.table.num_rows)[facts.rows] for name in ("x", "y", "cluster")]
        if not np.isnan(known[0]).all():
            places = np.column_stack(known[:2]).astype(np.float32)
            labels = np.where(np.isnan(known[2]), -1, known[2]).astype(np.int32)
            return add_places(facts.vectors, places, check), add_to_clusters(facts.vectors, labels)
    return project(facts.vectors, check), clusters(facts.vectors, check)


def _alike_columns(facts: CorpusFacts, alike: Likenesses) -> dict[str, pa.Array]:
    count = facts.table.num_rows
    revisions = facts.table["revision"].to_pylist()
    compared = np.zeros(count, np.bool_)
    compared[alike.compared] = True
    like: list[list[int] | None] = [None] * count
    shares: list[list[float] | None] = [None] * count
    for each in alike.pairs:
        like[each.first] = [*(like[each.first] or ()), revisions[each.second]]
        shares[each.first] = [*(shares[each.first] or ()), each.share]
    return {
        "near": pa.array(alike.near, mask=alike.near < 0),
        "near_share": pa.array(alike.share, mask=np.isnan(alike.share)),
        "compared": pa.array(compared),
        "like": pa.array(like, pa.list_(pa.int64())),
        "like_share": pa.array(shares, pa.list_(pa.float32())),
    }


def _place_columns(places: Matrix, cluster: Labels) -> dict[str, pa.Array]:
    return {
        "x": pa.array(places[:, 0], mask=np.isnan(places[:, 0])),
        "y": pa.array(places[:, 1], mask=np.isnan(places[:, 1])),
        "cluster": pa.array(cluster, mask=cluster < 0),
    }


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
