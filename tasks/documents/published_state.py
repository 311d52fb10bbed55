"""The published state of a source in a plan: which documents are settled, and the rows of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from parquetry import ids
from parquetry.model import DocumentRow, Listing
from parquetry.planning.diff import Reindex, stale
from parquetry.planning.fingerprint import Fingerprints
from parquetry.planning.outline import DocumentOutline
from parquetry.planning.unchanged import ScanPass, UnchangedIndex
from parquetry.sources.base import Hashing, Remembering, Source
from parquetry.sources.nesting import Owners
from parquetry.sources.registry import Scope
from parquetry.storage.lake.current import CurrentRows
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.rehash import hashes_of
from parquetry.tasks.documents.spooled import GrowingRecords


class PublishedState:
    """The published state of one source, as far as a refresh needs it."""

    def __init__(
        self, scope: Scope, source: Source, fingerprints: Fingerprints, force: Reindex | None, rehash: Fetching | None
    ) -> None:
        self.scope = scope
        self.source = source
        self.fingerprints = fingerprints
        self.key = (scope.namespace, scope.name)
        self.is_forced = force is not None
        self._rehash = rehash
        self._knows_all = self.is_forced or rehash is not None or isinstance(source, Remembering)
        self._owners = Owners(scope.inner)
        self.rows: GrowingRecords[DocumentRow] = GrowingRecords("known")
        """rows of documents that may need work"""
        self.unchanged = UnchangedIndex()
        """the other documents"""
        self.hashes: dict[str, str | None] = {}
        """content hashes of new documents by path; None for unreadable ones"""
        self._looked_at: dict[str, str | None] = {}
        """the same for published documents"""
        self._up_to_date: dict[tuple[object, ...], bool] = {}
        """kinds of rows, and whether they are stored as the present settings require"""

    def known(self) -> Sequence[DocumentRow]:
        """Return the rows of documents that may need work, as far as they were found; a few in the order of paths."""
        found = self.rows.records()
        return tuple(sorted(found, key=attrgetter("path"))) if isinstance(found, tuple) else found

    def takes(self, row: DocumentOutline) -> bool:
        """Sort in a document of this source; return False if its whole row is needed."""
        if not self.is_settled(row):
            return False
        if self.scope.covers(row.path):
            self.unchanged.add(row)
        return True

    def is_settled(self, row: DocumentOutline | DocumentRow) -> bool:
        """Return True if a document needs nothing while the source lists it as it is published."""
        return not self._knows_all and self._is_up_to_date(row) and self.owner_of(row.path) is None

    def _is_up_to_date(self, row: DocumentOutline | DocumentRow) -> bool:
        state = (row.status, row.fingerprint, row.media_type, bool(row.revision))
        if state not in self._up_to_date:
            found = row.status == "indexed" and stale(row, self.fingerprints)[0] == "nothing"
            self._up_to_date[state] = found
        return self._up_to_date[state]

    def owner_of(self, path: str) -> str | None:
        """Return the inner source that a document belongs to."""
        owner = self._owners.of(path)
        return None if owner is None else owner.source

    def missing(self, scan_pass: ScanPass, current: CurrentRows, paths: frozenset[str] | None) -> Iterator[str]:
        """Yield paths of settled documents that were not listed; rereads rows, so only for incomplete listings."""
        if not len(self.unchanged):
            return
        yield from (
            row.path
            for row in current.outlines(paths)
            if (row.namespace, row.source) == self.key and scan_pass.misses(row.path)
        )

    def hash_listed(self, listing: Listing, sizes: Collection[int]) -> None:
        """Hash new documents with the size of a published one, whose content they may have; on a rehash, all others.

        Args:
            listing: listing of the source.
            sizes: sizes of the documents of its namespace, in bytes.
        """
        if sizes and not self.is_forced:
            known = {ids.memory_hash(row.path) for row in self.known()}
            for item in listing.items:
                if item.size and item.size in sizes and ids.memory_hash(item.path) not in known:
                    self.hashes[item.path] = self.hash_of(item.path)
        if self._rehash is not None:
            rows = {row.path: row for row in self.known()}
            self._looked_at = hashes_of(listing, rows, self.source, self._rehash)

    def remember_rows(self) -> None:
        """Give the rows to a source that asks for them."""
        if isinstance(self.source, Remembering):
            # A comparison that ignores change tokens needs the bytes.
            known = self.known()
            rows = (replace(row, etag="") for row in known) if self._rehash else known
            self.source.remember({row.path: row for row in rows})

    def hash_of(self, path: str) -> str | None:
        for hashes in (self.hashes, self._looked_at):
            if path in hashes:
                return hashes[path]
        if not isinstance(self.source, Hashing):
            return None
        try:
            return self.source.hash(path)
        except OSError:
            # It is read again when it is fetched, where an error is contained.
            return None
