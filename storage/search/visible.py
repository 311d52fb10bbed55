"""The documents of the search index visible to a caller: temporary tables, and counts over them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading, rows, tuples
from parquetry.storage.index.hit_columns import DOCUMENT_COLUMNS
from parquetry.storage.search.filters import Filters, select_visible
from parquetry.storage.search.visible_documents import VisibleDocuments, read_visible_documents

RELATION = "visible"
"""table `(doc, copies)` of the revisions that may answer, `copies` being the number of documents of each"""


@dataclass(frozen=True, slots=True)
class VisibleSpace:
    """A vector space and its number of visible chunks."""

    number: int
    dimension: int
    chunks: int


class Visible:
    """The part of an index that one caller may see.

    Args:
        connection: connection with an index as current database; receives temporary tables.
        filters: the caller and the conditions.

    Raises:
        SettingsError: a filter is not valid.
    """

    def __init__(self, connection: Connection, filters: Filters) -> None:
        self._connection = connection
        # Rows are identified by rowid, which is faster to compare than their id.
        placed = "(SELECT *, rowid AS place FROM parts.documents) AS documents"
        select_visible(connection, filters, placed, ("doc", "place", "number"), "visible_documents")
        with reading():
            connection.execute(
                f"""CREATE OR REPLACE TEMP TABLE {RELATION} AS
                SELECT doc, count(*)::INTEGER AS copies FROM visible_documents GROUP BY doc"""
            )
        found = tuples(
            connection,
            f"""SELECT s.embedder, s.space, s.dimension, sum(r.chunks)::BIGINT, count(*), sum(v.copies)::BIGINT,
                sum(v.copies * r.chunks)::BIGINT, sum(v.copies * r.length)::BIGINT
            FROM {RELATION} AS v JOIN parts.revisions AS r USING (doc) LEFT JOIN parts.spaces AS s USING (space)
            GROUP BY ALL ORDER BY s.embedder""",
        )
        self.spaces: Mapping[str, VisibleSpace] = {
            embedder: VisibleSpace(*numbers) for embedder, *numbers in (row[:4] for row in found) if embedder
        }
        """vector spaces by embedder"""
        revisions, self.documents, self.chunks, self.length = (sum(row[i] for row in found) for i in range(4, 8))
        ((dead, known, live, self.postings, segments),) = tuples(
            connection,
            """SELECT (SELECT count(*) FROM parts.dead), (SELECT count(*) FROM parts.revisions),
                (SELECT count(*) FROM parts.documents WHERE doc IS NOT NULL), (SELECT count(*) FROM parts.postings),
                (SELECT count(*) FROM parts.segments)""",
        )
        """postings of the index, visible or not"""
        self._revisions = known + dead
        # Codes of replaced revisions are deleted from the index file alone.
        self.everything = self.documents == live and not (dead and segments)
        """True if no code of the index is left out"""
        self.whole = not dead and self.documents == revisions == known
        """True if every posting belongs to exactly one visible document, so that no join is needed"""

    @cached_property
    def listed(self) -> VisibleDocuments:
        """The visible documents as arrays; they are read when they are first needed."""
        return read_visible_documents(self._connection)

    @cached_property
    def copies(self) -> npt.NDArray[np.int64]:
        """Number of visible documents of each revision of the index."""
        return np.bincount(self.listed.docs, minlength=self._revisions)

    @property
    def bytes(self) -> int:
        """Bytes that are held in memory, outside of temporary tables."""
        held = vars(self)
        return (held["listed"].bytes if "listed" in held else 0) + (held["copies"].nbytes if "copies" in held else 0)

    def namespaces_of(self, embedder: str) -> list[str]:
        """Return the namespaces of the visible documents that a model embedded."""
        found = tuples(
            self._connection,
            """SELECT DISTINCT namespace FROM parts.documents
            WHERE embedder = $1 AND rowid IN (SELECT place FROM visible_documents) ORDER BY namespace""",
            [embedder],
        )
        return [namespace for (namespace,) in found]

    def first_documents(self, docs: Collection[int]) -> dict[int, str]:
        """Return the lowest id of the documents that have each revision."""
        lowest: dict[int, str] = {}
        for row in self._rows("doc, document_id", docs) if docs else ():
            lowest[row["doc"]] = min(row["document_id"], lowest.get(row["doc"], row["document_id"]))
        return lowest

    def documents_of(self, docs: Collection[int]) -> Mapping[int, Sequence[dict[str, Any]]]:
        """Return the columns to show of the documents that have each revision."""
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._rows(DOCUMENT_COLUMNS, docs):
            found[row.pop("doc")].append(row)
        return found

    def _rows(self, columns: str, docs: Collection[int]) -> list[dict[str, Any]]:
        # Numbers in the text of a statement would be compared one by one.
        return rows(
            self._connection,
            f"SELECT {columns} FROM parts.documents WHERE rowid IN (SELECT unnest($1::BIGINT[]))",
            [self.listed.rowids_of(docs).tolist()],
        )
