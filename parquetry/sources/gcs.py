"""Google Cloud Storage: `gs://bucket/prefix`."""

from __future__ import annotations

import errno
import inspect
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from types import MethodType
from typing import Any

from parquetry.errors import SettingsError, TransientError, first_line
from parquetry.model import Item, Unlisted
from parquetry.sources.base import Place
from parquetry.sources.filesystem import connect
from parquetry.sources.remote import Root, listing, reading

_READS = 3
_FIELDS = "nextPageToken,items(name,size,generation,updated,contentEncoding)"


class GoogleSource:
    """Documents of a bucket, listed page by page and read by listed generation.

    gcsfs signs in. Requests use its lowest level: above it, gcsfs queries the type of the bucket through other
    endpoints and waits a minute for the response where they are blocked.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List as `Source.scan` describes."""
        from google.auth.exceptions import DefaultCredentialsError, RefreshError

        with listing(self._place, DefaultCredentialsError, RefreshError):
            _, bucket, root = self._opened
        start = prefix.rstrip("/")
        tokens: set[str] = set()
        token = None
        while True:
            with listing(self._place, DefaultCredentialsError, RefreshError):
                page = self._ask(
                    *("b/{}/o", bucket), json_out=True, prefix=root.name(start), pageToken=token, fields=_FIELDS
                )
            for found in page.get("items", ()):
                path = root.path(found["name"])
                within = not start or path == start or path.startswith(f"{start}/")
                if within and root.holds(found["name"]) and not _is_folder(found):
                    yield self._item(root, path, found)
            token = page.get("nextPageToken")
            if token is None:
                return
            if token in tokens:
                raise TransientError("unlisted", f"{root.uri} sends the same page of its listing again and again")
            tokens.add(token)

    def _item(self, root: Root, path: str, found: Mapping[str, Any]) -> Item:
        return Item(
            path=path,
            uri=root.uri_of(path),
            size=int(found["size"]),
            etag=str(found["generation"]),
            modified_at=datetime.fromisoformat(found["updated"]).astimezone(UTC),
            access=self._place.access,
        )

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one generation of an object: the listed one, or the newest if that was replaced."""
        with reading(item.path):
            filesystem, bucket, root = self._opened
            name = root.name(item.path)
            for _ in range(_READS):
                try:
                    _, content = self._ask(filesystem.url(f"{bucket}/{name}", generation=item.etag))
                except FileNotFoundError:
                    found = self._ask("b/{}/o/{}", bucket, name, json_out=True)
                    item = replace(self._item(root, item.path, found), access=item.access)
                else:
                    return item, content
        raise TransientError("changed-while-read", f"{item.path} kept changing while it was read")

    def _ask(self, path: str, *names: str, **options: Any) -> Any:
        try:
            return self._opened[0].call("GET", path, *names, **options)
        except OSError as error:
            # The only refusal that gcsfs reports without its status.
            if str(error).startswith("Forbidden"):
                raise PermissionError(errno.EACCES, first_line(error)) from error
            raise

    @cached_property
    def _opened(self) -> tuple[Any, str, Root]:
        # The error contains everything that gcsfs logs.
        logging.getLogger("gcsfs").addHandler(logging.NullHandler())
        filesystem, root = connect(self._place)
        # Only the run retries; gcsfs would retry for half a minute, and nothing could stop or count those attempts.
        filesystem._request = MethodType(inspect.unwrap(type(filesystem)._request), filesystem)
        bucket, _, base = root.base.partition("/")
        if not bucket:
            raise SettingsError(f"source {self._place.name}: {self._place.uri} names no bucket; use gs://bucket")
        return filesystem, bucket, Root(root.uri, base)


def open_gcs(place: Place) -> GoogleSource:
    """Open a bucket, or a prefix within it; `[source.options]` are the options of gcsfs."""
    return GoogleSource(place)


def _is_folder(found: Mapping[str, Any]) -> bool:
    return found["name"].endswith("/") and int(found["size"]) == 0
