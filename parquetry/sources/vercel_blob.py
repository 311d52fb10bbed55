"""Vercel Blob: `vercel-blob://prefix`, public and private stores, read through Vercel's own client."""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from parquetry.errors import BrokenDocument, SettingsError, TransientError, first_line
from parquetry.model import Item, Unlisted
from parquetry.settings.base import Section
from parquetry.sources.base import Place
from parquetry.sources.options import options_of
from parquetry.sources.remote import Root, listing, reading

Result = TypeVar("Result")
_TIMEOUT = 60.0
"""seconds"""


class VercelBlobSource:
    """Documents of a Vercel Blob store; the token is in the environment.

    The client sends the token only to Vercel's API and to the private host of the token's own store.
    """

    def __init__(self, place: Place) -> None:
        import httpx
        from vercel.api import session
        from vercel.blob.sync import SyncBlobServiceOptions

        options = SyncBlobServiceOptions()
        client: Any = httpx.Client(
            timeout=_TIMEOUT, event_hooks={"response": [_PageCheck(options.base_url, place.uri)]}
        )
        # The client finds its session in the context. This one belongs to the source, in every thread.
        self._context = contextvars.copy_context()
        self._context.run(session(service_options=[options], httpx_client_factory=lambda: client).__enter__)
        weakref.finalize(self, client.close)
        base = place.uri.partition("://")[2].strip("/")
        self._place = place
        self._root = Root(place.uri.rstrip("/"), f"{base}/" if base else "")

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List as `Source.scan` describes, page by page."""
        from vercel.blob import sync

        start = prefix.rstrip("/")
        blobs = self._run(lambda: sync.query_blobs(prefix=self._root.name(start) or None))
        while (blob := self._next(blobs)) is not None:
            path = self._root.path(blob.pathname)
            within = not start or path == start or path.startswith(f"{start}/")
            if within and self._root.holds(blob.pathname) and not (blob.pathname.endswith("/") and blob.size == 0):
                yield self._item(path, blob)

    def _next(self, blobs: Iterator[Any]) -> Any:
        from vercel.blob import BlobAccessError, BlobCredentialsError, BlobStoreNotFoundError, BlobStoreSuspendedError

        with listing(self._place):
            try:
                return next(blobs, None)
            except (BlobAccessError, BlobCredentialsError, BlobStoreNotFoundError, BlobStoreSuspendedError) as error:
                raise SettingsError(
                    f"source {self._place.name}: there is no store that this token opens ({first_line(error)}); "
                    "correct BLOB_READ_WRITE_TOKEN"
                ) from error

    def _item(self, path: str, blob: Any) -> Item:
        return Item(
            path=path,
            uri=blob.url,
            size=blob.size,
            etag=_version(blob.etag) or f"{blob.uploaded_at.isoformat()}-{blob.size:x}",
            modified_at=blob.uploaded_at.astimezone(UTC),
            access=self._place.access,
        )

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one blob and verify its version: a cache may not have the newest one yet.

        Raises:
            BrokenDocument: the client refuses its name.
            TransientError: a cache still serves an older version.
        """
        from vercel.blob import BlobError, sync

        private = (urlsplit(item.uri).hostname or "").endswith(".private.blob.vercel-storage.com")
        access: Literal["public", "private"] = "private" if private else "public"
        with reading(item.path):
            try:
                # Bypass caches where Vercel allows it: in private stores.
                read = self._run(lambda: sync.get_blob(f"{item.uri}?cache=0" if private else item.uri, access=access))
            except BlobError as error:
                if type(error) is BlobError and error.status_code is None:
                    raise BrokenDocument("unreadable-name", f"Vercel's client refuses its name: {error}") from error
                raise
            version = _version(read.metadata.etag)
            if version == item.etag and len(read.body) == item.size:
                return item, read.body
            found = self._item(item.path, self._run(lambda: sync.head_blob(item.uri)))
        if version in ("", found.etag) and len(read.body) == found.size:
            return replace(found, access=item.access), read.body
        raise TransientError(
            "stale", f"{item.path} is not yet given out in its newest version; Vercel takes up to a minute"
        )

    def _run(self, call: Callable[[], Result]) -> Result:
        return self._context.copy().run(call)


def open_vercel_blob(place: Place) -> VercelBlobSource:
    """Open the store of the token in `BLOB_READ_WRITE_TOKEN`, or a prefix within it.

    Raises:
        SettingsError: it has options; Vercel Blob supports none.
    """
    options_of(place, Section)
    return VercelBlobSource(place)


class _PageCheck:
    """Checks every page of a listing before the client, which stops at an empty page.

    Args:
        interface: URL of Vercel's API.
        uri: URI of the source, for messages.
    """

    def __init__(self, interface: str, uri: str) -> None:
        self._interface, self._uri = interface, uri

    def __call__(self, response: Any) -> None:
        asked = response.request.url
        if (
            str(asked).partition("?")[0].rstrip("/") != self._interface
            or "url" in asked.params
            or not response.is_success
        ):
            return
        response.read()
        page = response.json()
        more = page.get("hasMore")
        if more and not page.get("blobs"):
            raise TransientError("unlisted", f"listing {self._uri} broke off: an empty page that is not the last")
        if more and page.get("cursor") == asked.params.get("cursor"):
            raise TransientError("unlisted", f"listing {self._uri} broke off: the same page again")


def _version(etag: str | None) -> str:
    """Return an entity tag without its weak prefix and quotes."""
    return (etag or "").removeprefix("W/").strip('"')
