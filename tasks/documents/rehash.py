"""Compare the bytes of published documents, regardless of their change tokens."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial

from parquetry import ids
from parquetry.errors import classify
from parquetry.model import DocumentRow, Item, Listing
from parquetry.sources.base import Hashing, Source
from parquetry.tasks.documents.fetching import Fetching

_SLICE = 256
"""documents that are awaited together"""


def hashes_of(
    listing: Listing, known: Mapping[str, DocumentRow], source: Source, fetching: Fetching
) -> dict[str, str | None]:
    """Return content hashes of listed documents by path; None for unreadable ones.

    Leaves out documents that were never read or published, and those that have changed according to the listing.

    Args:
        listing: listing of the source.
        known: its current rows, by path.
        source: the source that was listed.
        fetching: reads documents that the source does not hash by itself.
    """
    found: dict[str, str | None] = {}

    def look(item: Item) -> None:
        found[item.path] = _hash(item, listing, source, fetching)

    wanted: list[Item] = []
    for item in listing.items:
        row = known.get(item.path)
        if row is None or not row.content_hash or (item.etag != row.etag and item.size != row.size):
            continue
        if row.content_hash in item.etag:
            # The token is derived from the bytes, which were read for it.
            found[item.path] = row.content_hash
        else:
            wanted.append(item)
    for start in range(0, len(wanted), _SLICE):
        futures: list[Future[None]] = []
        try:
            for item in wanted[start : start + _SLICE]:
                fetching.check_cancelled()
                futures.append(fetching.start(listing.namespace, listing.source, partial(look, item)))
            for future in futures:
                fetching.wait_for(future)
        finally:
            for future in futures:
                future.cancel()
    return found


def _hash(item: Item, listing: Listing, source: Source, fetching: Fetching) -> str | None:
    if isinstance(source, Hashing):
        try:
            return source.hash(item.path)
        except OSError:
            # A web page that was not read during the listing, or a file whose error fetching will report.
            pass
    fetching.make_room(item.size)
    try:
        return ids.content_hash(fetching.fetch(listing.namespace, listing.source, item)[1])
    except Exception as error:
        if classify(error).fate == "stop":
            raise
        # It is fetched again when it is processed, where an error is contained.
        return None
    finally:
        fetching.give_back(item.size)
