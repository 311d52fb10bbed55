"""Every filesystem that fsspec supports: SFTP, FTP, SMB, WebDAV, HDFS, GitHub, memory and many more."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from parquetry import ids
from parquetry.errors import MissingExtra, SettingsError, TransientError, first_line
from parquetry.model import Item, Unlisted
from parquetry.sources.base import Place
from parquetry.sources.names import printable
from parquetry.sources.remote import NO_TIME, Root, listing, reading

_READS = 3
_EXTRAS = {"abfs": "azure", "abfss": "azure", "az": "azure", "gs": "gcs", "gcs": "gcs"}
"""scheme -> extra that installs its package"""
_LOCAL = frozenset({"local", "asynclocal"})
_STAMPS = (
    *("etag", "sha", "hex", "blob_id", "md5hash", "md5checksum", "md5", "checksum", "content_hash", "version_id"),
    *("generation", "crc"),
)
"""lower-case keys of `ls` entries with a value that changes whenever the content does"""
_TIMES = (
    *("mtime", "last_modified", "lastmodified", "modified", "updated", "modified_at", "modifiedtime", "modify"),
    *("modificationtime", "date_time"),
)
"""lower-case keys of `ls` entries with the modification time"""
_MILLISECONDS = 1e11
"""a numeric time above this is in milliseconds, not seconds"""


class FilesystemSource:
    """Documents of an fsspec filesystem, listed one folder after another.

    Links are not followed, and only files are documents. Each thread opens its own filesystem: FTP and others have
    a single connection that cannot serve two requests at once.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._own = threading.local()

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List as `Source.scan` describes. A prefix needs the root, too: if the root is gone, nothing is removed."""
        start = prefix.rstrip("/")
        with listing(self._place):
            filesystem, root = self._opened()
            filesystem.invalidate_cache()
            entries = filesystem.ls(root.base or filesystem.root_marker, detail=True)
            if len(entries) == 1 and entries[0]["type"] == "file" and _same(entries[0]["name"], root.base):
                raise SettingsError(
                    f"source {self._place.name}: {root.uri} is a document; name the folder that holds it"
                )
            if start:
                entries = _at(filesystem, root.name(start))
        yield from self._walk(filesystem, root, start, entries)

    def _walk(self, filesystem: Any, root: Root, start: str, entries: Sequence[Any]) -> Iterator[Item | Unlisted]:
        """Yield every document among these entries of `start`, and in the folders among them."""
        folders = [start]
        while folders:
            folder = folders.pop()
            if folder != start:
                try:
                    with reading(folder):
                        entries = filesystem.ls(root.name(folder), detail=True)
                except OSError as error:
                    yield Unlisted(folder, f"cannot list {root.uri_of(folder)}: {error.strerror}")
                    continue
            for entry in entries:
                path = root.path(str(entry["name"]).rstrip("/"))
                itself = _same(entry["name"], root.name(folder))
                if entry["type"] == "file" and itself and folder != start:
                    yield Unlisted(
                        folder, f"{root.uri_of(folder)} is a document and a folder, and hides what is below it"
                    )
                elif entry["type"] == "file":
                    yield self._listed(filesystem, root, entry)
                elif entry["type"] == "directory" and not itself:
                    if path.rpartition("/")[2] in (".", ".."):
                        yield Unlisted(path, f"{root.uri_of(path)} is not entered: its name means another folder")
                    else:
                        folders.append(path)

    def _listed(self, filesystem: Any, root: Root, entry: Mapping[str, Any]) -> Item | Unlisted:
        path = root.path(entry["name"])
        if not root.holds(entry["name"]):
            return Unlisted("", f"{root.uri} lists {printable(entry['name'])}, which is not below it")
        try:
            with reading(path):
                return self._item(filesystem, root, entry, path)
        except OSError as error:
            return Unlisted(path, f"cannot read the properties of {root.uri_of(path)}: {error.strerror}")

    def _item(self, filesystem: Any, root: Root, entry: Mapping[str, Any], path: str) -> Item:
        name = root.name(path)
        if entry.get("size") is None:
            entry = {**entry, **filesystem.info(name)}
        told = {key.lower(): value for key, value in entry.items() if value not in (None, "")}
        if not any(key in told for key in (*_STAMPS, *_TIMES)):
            with suppress(NotImplementedError, KeyError):
                told["mtime"] = filesystem.modified(name)
        stamp, size = _stamp(told), told.get("size")
        if stamp is None or size is None:
            content = filesystem.cat_file(name)
            stamp, size = f"content:{ids.content_hash(content)}", len(content)
        return Item(
            path=path,
            uri=root.uri_of(path),
            size=int(size),
            etag=f"{stamp}-{int(size):x}",
            modified_at=_modified(told) or NO_TIME,
            access=self._place.access,
        )

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one document; read it again if it changed in the meantime."""
        known = item
        with reading(item.path):
            filesystem, root = self._opened()
            name = root.name(item.path)
            for _ in range(_READS):
                content = filesystem.cat_file(name)
                if _kind(item) == "content":
                    etag = f"content:{ids.content_hash(content)}-{len(content):x}"
                    return replace(item, size=len(content), etag=etag), content
                found = self._item(filesystem, root, filesystem.info(name), item.path)
                if found.etag == known.etag and found.size == len(content):
                    # Some filesystems report other properties for one file than in a listing. A change token of the
                    # other kind would differ from the one of every later scan.
                    return (found if _kind(found) == _kind(item) else replace(item, size=found.size)), content
                known = found
        raise TransientError("changed-while-read", f"{item.path} kept changing while it was read")

    def _opened(self) -> tuple[Any, Root]:
        """Open the filesystem on first use: a server that is down affects only its own source."""
        if not hasattr(self._own, "opened"):
            self._own.opened = connect(self._place)
        opened: tuple[Any, Root] = self._own.opened
        return opened


def open_filesystem(place: Place) -> FilesystemSource:
    """Open the place at any fsspec URL; `[source.options]` are the options of its filesystem.

    Raises:
        SettingsError: the URL is on this machine; only a path to a folder keeps links from leading out of it.
    """
    if urlsplit(place.uri).scheme.lower() in _LOCAL:
        raise SettingsError(f"source {place.name}: {place.uri} is on this machine; give the folder as a path")
    return FilesystemSource(place)


def connect(place: Place) -> tuple[Any, Root]:
    """Return the filesystem of a place, without its caches, and the root of the source in it.

    Raises:
        SettingsError: invalid options, or a missing package.
    """
    from fsspec.core import url_to_fs
    from fsspec.dircache import DirCache

    kind = urlsplit(place.uri).scheme.lower()
    try:
        filesystem, base = url_to_fs(place.uri, skip_instance_cache=True, **place.options)
    except ImportError as error:
        if kind in _EXTRAS:
            raise MissingExtra(_EXTRAS[kind], f"source {place.name} ({kind}://)") from error
        raise SettingsError(f"source {place.name}: {kind}:// needs a package: {first_line(error)}") from error
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"source {place.name}: {place.uri} cannot be opened: {first_line(error)}; correct options or credentials"
        ) from error
    if isinstance(filesystem.dircache, DirCache):
        # Set only here: not every filesystem accepts it as an option.
        filesystem.dircache.use_listings_cache = False
    base = base or filesystem.root_marker
    return filesystem, Root(place.uri.rstrip("/"), base if base.endswith("/") or not base else f"{base}/")


def _at(filesystem: Any, name: str) -> Sequence[Any]:
    """List one name: a document itself, the entries of a folder, or nothing."""
    try:
        found = filesystem.info(name)
    except FileNotFoundError:
        return ()
    entries: Sequence[Any] = [found] if found["type"] == "file" else filesystem.ls(name, detail=True)
    return entries


def _same(one: str, other: str) -> bool:
    return one.strip("/") == other.strip("/")


def _kind(item: Item) -> str:
    return item.etag.partition(":")[0]


def _stamp(told: Mapping[str, Any]) -> str | None:
    """Return the change token without the size, prefixed with its origin; None if the filesystem reports nothing."""
    for key in _STAMPS:
        if key in told:
            return f"{key}:{told[key]}".replace('"', "")
    for key in _TIMES:
        if key in told:
            return f"time:{told[key]}"
    return None


def _modified(told: Mapping[str, Any]) -> datetime | None:
    for key in _TIMES:
        value = told.get(key)
        try:
            match value:
                case datetime():
                    moment = value
                case int() | float():
                    moment = datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC)
                case str():
                    moment = _parsed(value)
                case tuple():
                    moment = datetime(*value[:6])
                case _:
                    continue
        except (ValueError, OverflowError, OSError):
            continue
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return None


def _parsed(text: str) -> datetime:
    if "," in text:
        return parsedate_to_datetime(text)
    if len(text) == len("20260101000000") and text.isdigit():
        # The format of FTP servers.
        return datetime.strptime(text, "%Y%m%d%H%M%S")
    return datetime.fromisoformat(text)
