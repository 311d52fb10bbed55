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
    """Documents of a bucket, listed page by page and read by the generation that was listed.

    gcsfs signs in. Requests go through its lowest level: above it, gcsfs asks for the kind of the bucket by other means
    and waits a minute for the answer where they are barred.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """As `Source.scan`."""
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
        """Read one generation of an object: the one listed, or the newest if that one was replaced."""
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
            # The one refusal that gcsfs does not tell by its status.
            if str(error).startswith("Forbidden"):
                raise PermissionError(errno.EACCES, first_line(error)) from error
            raise

    @cached_property
    def _opened(self) -> tuple[Any, str, Root]:
        # What it logs is in the error as well.
        logging.getLogger("gcsfs").addHandler(logging.NullHandler())
        filesystem, root = connect(self._place)
        # Tried again is by the run alone; gcsfs would for half a minute, and nobody could stop or count it.
        filesystem._request = MethodType(inspect.unwrap(type(filesystem)._request), filesystem)
        bucket, _, base = root.base.partition("/")
        if not bucket:
            raise SettingsError(f"source {self._place.name}: {self._place.uri} names no bucket; use gs://bucket")
        return filesystem, bucket, Root(root.uri, base)


def open_gcs(place: Place) -> GoogleSource:
    """The bucket, or what is below a prefix in it; `[source.options]` are the options of gcsfs."""
    return GoogleSource(place)


def _is_folder(found: Mapping[str, Any]) -> bool:
    return found["name"].endswith("/") and int(found["size"]) == 0
