"""Azure Blob Storage: `abfs://container/prefix`, `az://`, `abfss://container@account.dfs.core.windows.net/prefix`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC
from functools import cached_property
from http import HTTPStatus
from typing import Any, TypeVar

from parquetry.errors import BrokenDocument, SettingsError, TransientError
from parquetry.model import Item, Unlisted
from parquetry.sources.base import Place
from parquetry.sources.filesystem import connect
from parquetry.sources.remote import NO_TIME, Root, listing, reading

Result = TypeVar("Result")
_READS = 3
_PAGE = 5000
"""blobs per page; Azure's maximum"""


class AzureSource:
    """Documents of a container.

    adlfs signs in with every method it supports. Listing and reading use Microsoft's own client, because adlfs splits
    names at `?`, loses some names with empty parts, and retries for a minute on its own.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List as `Source.scan` describes, page by page."""
        from azure.core.exceptions import ClientAuthenticationError

        filesystem, _, root = self._opened
        start = prefix.rstrip("/")
        pages = self._client.list_blobs(
            name_starts_with=root.name(start) or None, include=["metadata"], results_per_page=_PAGE, retry_total=0
        ).by_page()
        markers: set[str] = set()
        while True:
            with listing(self._place, ClientAuthenticationError):
                page = _run(filesystem, lambda: _next(pages))
            if page is None:
                return
            for blob in page:
                path = root.path(blob.name)
                within = not start or path == start or path.startswith(f"{start}/")
                if within and root.holds(blob.name) and not _is_folder(blob):
                    yield self._item(root, path, blob)
            marker = pages.continuation_token
            if marker in markers:
                raise TransientError("unlisted", f"{root.uri} sends the same page of its listing again and again")
            markers.add(marker)

    def _item(self, root: Root, path: str, blob: Any) -> Item:
        return Item(
            path=path,
            uri=root.uri_of(path),
            size=blob.size,
            etag=blob.etag.strip('"'),
            modified_at=blob.last_modified.astimezone(UTC) if blob.last_modified else NO_TIME,
            access=self._place.access,
        )

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one blob; a large one in pieces of a single version."""
        from azure.core.exceptions import ResourceModifiedError

        with reading(item.path):
            filesystem, _, root = self._opened
            blob = self._client.get_blob_client(root.name(item.path))
            for _ in range(_READS):
                try:
                    found, content = _run(filesystem, lambda: _load(blob))
                except ResourceModifiedError:
                    continue
                if len(content) == found.size:
                    return replace(self._item(root, item.path, found), access=item.access), content
        raise TransientError("changed-while-read", f"{item.path} kept changing while it was read")

    @cached_property
    def _opened(self) -> tuple[Any, str, Root]:
        filesystem, root = connect(self._place)
        container, _, base = root.base.partition("/")
        if not container:
            raise SettingsError(
                f"source {self._place.name}: {self._place.uri} names no container; use abfs://container"
            )
        return filesystem, container, Root(root.uri, base)

    @cached_property
    def _client(self) -> Any:
        filesystem, container, _ = self._opened
        return filesystem.service_client.get_container_client(container)


def open_azure(place: Place) -> AzureSource:
    """Open a container, or a prefix within it; `[source.options]` are the options of adlfs."""
    return AzureSource(place)


async def _next(pages: Any) -> list[Any] | None:
    try:
        return [blob async for blob in await anext(pages)]
    except StopAsyncIteration:
        return None


async def _load(blob: Any) -> tuple[Any, bytes]:
    from azure.core.exceptions import HttpResponseError

    try:
        stream = await blob.download_blob(max_concurrency=4, retry_total=0)
    except HttpResponseError as error:
        if error.status_code == HTTPStatus.CONFLICT and getattr(error, "error_code", "") == "BlobArchived":
            raise BrokenDocument("archived", "is in the archive tier; move it to another to have it read") from error
        raise
    return stream.properties, await stream.readall()


def _run(filesystem: Any, call: Callable[[], Awaitable[Result]]) -> Result:
    """Run a call in the client's thread and wait for the result."""
    from fsspec.asyn import sync

    answer: Result = sync(filesystem.loop, call)
    return answer


def _is_folder(blob: Any) -> bool:
    """Return True for a folder marker: of a hierarchical account, or written by a tool."""
    flags = {key.lower(): value for key, value in (blob.metadata or {}).items()}
    return flags.get("hdi_isfolder") == "true" or (blob.name.endswith("/") and blob.size == 0)
