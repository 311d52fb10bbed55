"""Documents with nearly the same text as others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parquetry.analysis.near_duplicates import Likeness, Sketch, groups, likenesses, sketch
from parquetry.analysis.similar_vectors import MOST_PAIRS, Rows, similar_pairs
from parquetry.storage.analysis.course import COMPARING, Look, check_of
from parquetry.storage.analysis.earlier import MOST_CHANGED, Earlier
from parquetry.storage.analysis.facts import CorpusFacts
from parquetry.storage.database import Connection

_READ = 100
"""texts that are in memory at a time"""


@dataclass(frozen=True, slots=True)
class Likenesses:
    """Documents with nearly the same text, by row of the facts."""

    near: np.ndarray[tuple[int], np.dtype[np.int32]]
    """number of the group; -1 for a document that is like no other"""
    share: np.ndarray[tuple[int], np.dtype[np.float32]]
    """greatest share of word sequences in common with another; NaN for such a one"""
    compared: Rows
    """rows that were compared: one for each content"""
    pairs: tuple[Likeness, ...]
    """pairs of these, by row"""
    cut: bool
    """True if there were more similar documents than are compared"""


def find_alike(connection: Connection, facts: CorpusFacts, before: Earlier | None, look: Look) -> Likenesses:
    """Return the documents with nearly the same text as others.

    Documents with the same bytes count as one. Pairs that an earlier analysis found among documents that have not
    changed are kept; those that changed are compared with all.

    Args:
        connection: connection of `connect_snapshot`.
        facts: facts on the documents.
        before: what an earlier analysis knows.
        look: called between steps.
    """
    known = before.compared() if before is not None else frozenset()
    contents, compared = _contents(facts)
    vectors = facts.vectors[np.searchsorted(facts.rows, compared)]
    changed: Rows | None = np.array([place for place, row in enumerate(compared) if int(row) not in known], np.int64)
    if before is None or len(known) < (1 - MOST_CHANGED) * len(compared):
        before = changed = None
    pairs = similar_pairs(vectors, changed, check_of(look, COMPARING))
    found = likenesses(pairs, _sketches(connection, facts, compared, pairs, look))
    alike = [Likeness(int(compared[each.first]), int(compared[each.second]), each.share) for each in found]
    if before is not None:
        alike += _kept(facts, before, compared)
    near, share = _of_rows(facts, contents, alike)
    return Likenesses(near, share, compared, tuple(alike), len(pairs) >= MOST_PAIRS)


def _contents(facts: CorpusFacts) -> tuple[dict[int, int], Rows]:
    """Return row -> first row with its content, and these, ascending."""
    hashes = facts.table["content_hash"].to_pylist()
    standing: dict[object, int] = {}
    for row in facts.rows.tolist():
        standing.setdefault(hashes[row] or row, row)
    contents = {row: standing[hashes[row] or row] for row in facts.rows.tolist()}
    return contents, np.array(sorted(standing.values()), np.int64)


def _sketches(
    connection: Connection, facts: CorpusFacts, compared: Rows, pairs: Sequence[tuple[int, int]], look: Look
) -> dict[int, Sketch]:
    """Return sketches of the texts of documents that are compared, by place; texts are read in one pass."""
    revisions = facts.table["revision"].to_pylist()
    places = {revisions[compared[place]]: place for pair in pairs for place in pair}
    if not places:
        return {}
    cursor = connection.cursor()
    cursor.execute("SELECT revision, text FROM texts WHERE revision IN (SELECT unnest($1::BIGINT[]))", [list(places)])
    sketches: dict[int, Sketch] = {}
    while read := cursor.fetchmany(_READ):
        look(COMPARING)
        sketches |= {places[revision]: sketch(text) for revision, text in read}
    return sketches


def _kept(facts: CorpusFacts, before: Earlier, compared: Rows) -> list[Likeness]:
    """Return the pairs of the earlier analysis of which both documents are still there and stand for their content."""
    revisions = facts.table["revision"].to_pylist()
    places = {revisions[row]: row for row in compared.tolist() if row in before.rows}
    found = []
    for revision, other, share in before.alike():
        if revision in places and other in places:
            first, second = sorted((places[revision], places[other]))
            found.append(Likeness(first, second, share))
    return found


def _of_rows(
    facts: CorpusFacts, contents: dict[int, int], alike: Sequence[Likeness]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Return group and share of each row; documents with the same content have those of the one that was compared."""
    count = facts.table.num_rows
    numbers = groups(alike, count)
    greatest = np.full(count, np.nan, np.float32)
    for each in alike:
        for row in (each.first, each.second):
            greatest[row] = np.fmax(greatest[row], each.share)
    near, share = np.full(count, -1, np.int32), np.full(count, np.nan, np.float32)
    for row, standing in contents.items():
        near[row], share[row] = numbers[standing], greatest[standing]
    return near, share
