"""Planning: the changes between a listing and the current documents. Pure except for the injected hash function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Literal

from parquetry import ids
from parquetry.model import BrokenOff, ChunkSize, DocumentRow, Item, LeftOut, Listing, Unlisted
from parquetry.planning.fingerprint import Fingerprint, Fingerprints
from parquetry.planning.kept import KeptDocuments, kept_of
from parquetry.planning.known_rows import KnownRows
from parquetry.planning.outline import DocumentOutline
from parquetry.planning.tally import TalliedChanges, Tally
from parquetry.settings.sections import RefreshSettings
from parquetry.sources.paths import covers
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import same_reading

Action = Literal["added", "changed", "moved", "permissions", "unchanged", "removed"]
Effort = Literal["nothing", "row", "rechunk", "extract"]
"""row: write only the row in `documents`; rechunk: redo chunks from the stored text; extract: read the source again"""


@dataclass(frozen=True, slots=True)
class Change:
    """Planned change of one document, with its reason."""

    action: Action
    effort: Effort
    reason: str
    document_id: str
    namespace: str
    source: str
    item: Item | None
    """None for a removed document"""
    known: DocumentRow | None
    """current row of the document; None if it is new or was removed"""
    origin: DocumentRow | None = None
    """row of another document with the revision to reuse; the origin of a moved document is removed"""

    @property
    def base(self) -> DocumentRow | None:
        """Row with the data already stored for this content."""
        return self.origin or self.known


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The plan for one source."""

    source: str
    namespace: str
    changes: Sequence[Change]
    """in the order of the listing, removals last; may include documents that need nothing, and may be in a file, from
    which they are read again each time"""
    unlisted: tuple[Unlisted, ...] = ()
    refused: str | None = None
    """reason why a guard refuses this source; None if it may proceed"""
    broken: BrokenOff | None = None
    """reason why its listing is incomplete"""
    unchanged: int = 0
    """number of further listed documents that need nothing"""
    left_out: tuple[LeftOut, ...] = ()
    """further documents, which belong to other sources"""
    handed_over: tuple[Change, ...] = ()
    """removals of documents that now belong to other sources; exempt from the guard"""
    kept: tuple[KeptDocuments, ...] = ()
    """further documents, which would be removed if the listing were complete"""

    @property
    def listed(self) -> int:
        """Number of documents listed so far, plus the planned removals."""
        return self.unchanged + len(self.changes)

    @property
    def found_nothing(self) -> bool:
        """True if a complete listing found nothing and the source has no published documents."""
        seen = self.listed or self.unlisted or self.left_out or self.handed_over
        return not seen and self.broken is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Places that could not be listed, one line each."""
        lines = [f"{place.path or self.source}: {place.detail}" for place in self.unlisted]
        if self.broken is not None:
            lines.append(f"{self.source}: the listing broke off, so nothing was removed: {self.broken.detail}")
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class Reindex:
    """Documents to reindex whatever their hashes; all others are left alone."""

    effort: Literal["rechunk", "extract"]
    selects: Callable[[DocumentRow], bool]


def plan_source(
    listing: Listing,
    current: Sequence[DocumentRow],
    fingerprints: Fingerprints,
    hash_of: Callable[[str], str | None],
    settings: RefreshSettings,
    *,
    elsewhere: Iterable[DocumentRow] = (),
    allow_removals: bool = False,
    force: Reindex | None = None,
    owner_of: Callable[[str], str | None] = lambda _: None,
    missing: Iterable[str] = (),
    rehash: bool = False,
    keep: Callable[[Iterable[Change]], Sequence[Change]] = tuple,
) -> SourcePlan:
    """Compare the listing of a source with its published documents.

    Args:
        listing: items of the source, complete or not.
        current: current rows of the listing's source, except those counted in `listing.unchanged`; rows of other
            sources are used only for their content. They may be in a file.
        fingerprints: fingerprints of the present settings.
        hash_of: path -> content hash, or None if reading it now costs too much; called only when it can save work.
        settings: limits of the guard.
        elsewhere: current rows of the namespace, unchanged ones included, with content that a new document may share.
        allow_removals: True if the operator has approved any number of removals.
        force: documents to redo.
        owner_of: path -> name of the nested source that owns a document; None if this source owns it.
        missing: paths of unchanged documents that were not listed; consumed only if the listing is incomplete.
        rehash: True to detect changes by content hash and not by change token.
        keep: keeps the changes of the plan.
    """
    planner = _Planner(
        listing, current, elsewhere, fingerprints, hash_of, force, owner_of, missing, keep, rehash=rehash
    )
    return planner.plan(settings, allow_removals)


class _Planner:
    def __init__(
        self,
        listing: Listing,
        current: Sequence[DocumentRow],
        elsewhere: Iterable[DocumentRow],
        fingerprints: Fingerprints,
        hash_of: Callable[[str], str | None],
        force: Reindex | None,
        owner_of: Callable[[str], str | None],
        missing: Iterable[str],
        keep: Callable[[Iterable[Change]], Sequence[Change]],
        *,
        rehash: bool,
    ) -> None:
        self.rehash = rehash
        self.keep = keep
        self.listing = listing
        self.fingerprints = fingerprints
        self.hash_of = hash_of
        self.force = force
        self.handed_over: list[tuple[DocumentRow, str]] = []

        def is_ours(row: DocumentRow) -> bool:
            if row.source != listing.source or not covers(row.path, listing.prefix, listing.paths):
                return False
            owner = owner_of(row.path)
            if owner is not None:
                self.handed_over.append((row, owner))
            return owner is None

        self.known = KnownRows(current, elsewhere, is_ours)
        self.known.mark_listed(listing.items)
        unlisted = (row.path for row in self.known.unlisted())
        self.kept = () if listing.complete or force else kept_of(listing, chain(unlisted, missing))

    def plan(self, settings: RefreshSettings, allow_removals: bool) -> SourcePlan:
        if self.force is not None:
            return self._forced(self.force)
        planned = self._planned(self._changes())
        return replace(planned, refused=None if allow_removals else self._refusal(settings))

    def _changes(self) -> Iterator[Change]:
        """Yield the changes of listed documents, then the removals of those that none of them took over."""
        yield from map(self._change, self.listing.items)
        if self.listing.shows_removals:
            yield from map(self._removal, self.known.unlisted())

    def _refusal(self, settings: RefreshSettings) -> str | None:
        """Return the reason to refuse the removals; None if they need no approval."""
        listing, removed = self.listing, self.known.unlisted_count if self.listing.shows_removals else 0
        source, total = listing.source, self.known.count + listing.unchanged
        if removed and not listing.items and not listing.unchanged:
            # An empty mount, a wrong prefix or credentials without access look the same.
            return (
                f"source {source} would lose {removed} of {total} documents, because it lists nothing; nothing of it "
                "was refreshed. If it is meant to be empty, run again with --allow-removals"
            )
        if removed <= settings.max_removed_documents or removed <= settings.max_removed_share * total:
            return None
        return (
            f"source {source} would lose {removed} of {total} documents; nothing of it was refreshed. "
            "If that is right, run again with --allow-removals"
        )

    def _planned(self, changes: Iterable[Change]) -> SourcePlan:
        listing, tally = self.listing, Tally()
        kept = self.keep(tally.counted(changes))
        return SourcePlan(
            listing.source,
            listing.namespace,
            kept if isinstance(kept, tuple) else TalliedChanges(kept, tally),
            listing.unlisted,
            broken=listing.broken,
            unchanged=listing.unchanged,
            left_out=listing.left_out,
            handed_over=tuple(
                self._make("removed", "row", f"belongs to source {owner} now", None, row)
                for row, owner in self.handed_over
            ),
            kept=self.kept,
        )

    def _forced(self, force: Reindex) -> SourcePlan:
        def changes() -> Iterator[Change]:
            for item in self.listing.items:
                known = self.known.at(item.path)
                if known is not None and force.selects(known):
                    effort = force.effort if known.revision else "extract"
                    yield self._make("changed", effort, "reindex asked for", item, known)

        return self._planned(changes())

    def _change(self, item: Item) -> Change:
        known = self.known.at(item.path)
        if known is None:
            return self._new(item)
        same_token = known.etag == item.etag
        # A document that was never read has no hash to compare with.
        if same_token and not (self.rehash and known.content_hash):
            return self._same_bytes(item, known)
        if item.submission is not None:
            return self._handed_in(item, known)
        if not known.content_hash or not (same_token or known.size == item.size):
            return self._make("changed", "extract", "content changed", item, known)
        content_hash = self.hash_of(item.path)
        if content_hash != known.content_hash:
            unread = same_token and content_hash is None
            reason = "its bytes cannot be read now" if unread else "content changed"
            return self._make("changed", "extract", reason, item, known)
        same = self._same_bytes(item, known)
        touched = same.effort == "nothing" and not same_token
        return replace(same, effort="row", reason="touched, same content") if touched else same

    def _new(self, item: Item) -> Change:
        content_hash = self.hash_of(item.path) if item.size and self.known.has_size(item.size) else None
        twins = self.known.with_content(content_hash, item.size) if content_hash else ()
        same = sorted((row for row in twins if _alike(row, item)), key=lambda row: (row.source, row.path))
        if not same:
            return self._make("added", "extract", "new", item, None)
        gone = next((row for row in same if self._is_gone(row)), None)
        origin = gone or same[0]
        if gone is not None:
            self.known.take(gone.path)
        effort, reason = stale(origin, self.fingerprints, item.chunk_size)
        action: Action = "moved" if gone is not None else "added"
        reason = reason or (f"moved from {origin.path}" if gone is not None else f"same content as {origin.path}")
        return self._make(action, effort if effort != "nothing" else "row", reason, item, None, origin)

    def _is_gone(self, row: DocumentRow) -> bool:
        ours = self.listing.shows_removals and row.source == self.listing.source
        return ours and self.known.is_unlisted(row.path)

    def _handed_in(self, item: Item, known: DocumentRow) -> Change:
        """Compare an upload, whose change token tells what of it changed."""
        if not known.content_hash or not same_reading(known.etag, item.etag):
            return self._make("changed", "extract", "content changed", item, known)
        same = self._same_bytes(item, known)
        told = same.effort == "nothing" or same.action == "moved"
        return replace(same, action="changed", effort="row", reason="metadata changed") if told else same

    def _same_bytes(self, item: Item, known: DocumentRow) -> Change:
        effort, reason = stale(known, self.fingerprints, item.chunk_size)
        if effort != "nothing":
            return self._make("changed", effort, reason, item, known)
        if item.uri != known.uri:
            return self._make("moved", "row", f"moved from {known.uri}", item, known)
        if item.access != known.access:
            return self._make("permissions", "row", "permissions changed", item, known)
        return self._make("unchanged", "nothing", "unchanged", item, known)

    def _removal(self, row: DocumentRow) -> Change:
        return self._make("removed", "row", "gone from its source", None, row)

    def _make(
        self,
        action: Action,
        effort: Effort,
        reason: str,
        item: Item | None,
        known: DocumentRow | None,
        origin: DocumentRow | None = None,
    ) -> Change:
        namespace, source = self.listing.namespace, self.listing.source
        identity = known.document_id if known else ids.document_id(namespace, source, item.path if item else "")
        return Change(action, effort, reason, identity, namespace, source, item, known, origin)


def stale(
    row: DocumentRow | DocumentOutline, fingerprints: Fingerprints, chunk_size: ChunkSize | None = None
) -> tuple[Effort, str]:
    """Return the effort and reason to redo a document with unchanged bytes.

    Args:
        row: its row.
        fingerprints: of the present settings.
        chunk_size: its own size of chunks; None for that in the settings.
    """
    then, now = Fingerprint.parse(row.fingerprint), fingerprints.of(row.media_type, chunk_size)
    if then.extraction != now.extraction:
        return "extract", "extraction settings changed"
    # A failed document keeps its last good revision, which must be redone, too: a search uses a single embedder.
    if row.revision and then.chunking != now.chunking:
        return "rechunk", "chunking settings changed"
    if row.revision and then.embedding != now.embedding:
        return "rechunk", "embedding settings changed"
    if row.status == "failed" and row.transient:
        return "extract", f"tried again after: {row.error}"
    return "nothing", ""


def _alike(row: DocumentRow, item: Item) -> bool:
    """Return True if a published document with the bytes of an item is read like it.

    Equal bytes are read differently as `.txt` and as `.md`. What was handed in with an upload is no other document's.
    """
    if item.submission is not None:
        return row.source == UPLOADS and same_reading(row.etag, item.etag)
    return row.source != UPLOADS and PurePosixPath(row.path).suffix.lower() == PurePosixPath(item.path).suffix.lower()
