"""Removals deferred because a source could not be listed completely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from parquetry.model import Listing, Unlisted
from parquetry.plural import counted
from parquetry.sources.paths import ways


@dataclass(frozen=True, slots=True)
class KeptDocuments:
    """Published documents that were not listed but are kept, as they may be in a place that could not be listed."""

    namespace: str
    source: str
    path: str
    """place within the source that could not be listed; empty for the source as a whole"""
    itself: bool
    """True if the place is the document itself"""
    documents: int
    """number of documents in that place; for the source as a whole, of those missing and in no such place"""
    detail: str
    """reason for keeping them, as text"""

    def __str__(self) -> str:
        place = f"{'at' if self.itself else 'below'} {self.source}/{self.path}" if self.path else f"of {self.source}"
        documents = counted(self.documents, f"document {place} was", f"documents {place} were")
        return f"{documents} kept: {self.detail}"

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "itself"}


def kept_of(listing: Listing, missing: Iterable[str]) -> tuple[KeptDocuments, ...]:
    """Return the kept documents of a source by place, the place with the most documents first.

    Args:
        listing: listing of the source.
        missing: paths of its published documents that were not listed.
    """
    if listing.complete:
        return ()
    unseen = {place.path: place for place in reversed(listing.unlisted)}
    whole = unseen.pop("", None)
    counts: Counter[tuple[str, bool]] = Counter()
    for path in missing:
        place = next((above for above in reversed(tuple(ways(path))) if above in unseen), "")
        counts[place, place == path] += 1
    return tuple(
        KeptDocuments(
            listing.namespace,
            listing.source,
            path,
            itself,
            count,
            unseen[path].detail if path else _why(listing, whole),
        )
        for (path, itself), count in counts.most_common()
    )


def _why(listing: Listing, whole: Unlisted | None) -> str:
    if listing.broken is not None:
        return f"the listing broke off: {listing.broken.detail}"
    return whole.detail if whole else "not found, but not all of the source could be seen"
