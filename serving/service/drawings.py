"""Pages and pictures of documents, drawn from their bytes by a process with limits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from parquetry.errors import BrokenDocument, ParquetryError
from parquetry.extract.drawing import REFUSED, Order
from parquetry.extract.media_types import COMPRESSED, PDF, by_filename
from parquetry.ids import content_hash
from parquetry.serving.service.resources import Resources
from parquetry.settings.sections import Settings
from parquetry.sources.archive.source import Opening
from parquetry.sources.local.source import is_local
from parquetry.sources.registry import open_source, scope_of_source
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.store import Damaged

MOST_BYTES = 64 * 1024 * 1024
"""bytes of a document that is drawn"""
_SECONDS = 20
"""seconds of processor time, and half of those that a drawing may take"""
_CACHED_BYTES = 32 * 1024 * 1024
_KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT")
"""environment variables of the process: no secret is among them"""
Row = Mapping[str, Any]


class NotDrawn(Exception):
    """A page or picture that cannot be shown.

    Args:
        reason: one sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def can_be_drawn(settings: Settings, row: Row) -> bool:
    """Return True if a document is a PDF or picture whose bytes this service may find; nothing is read."""
    media_type = row["media_type"] or ""
    if media_type != PDF and not media_type.startswith("image/"):
        return False
    # Only processes with limits unpack anything.
    if by_filename(row["filename"]) in COMPRESSED:
        return False
    configured = {source.name: source.uri for source in settings.source}
    # A source that is not configured is named by its place.
    place = str(configured.get(row["source"], row["source"]))
    is_place = row["source"] in configured or "://" in place
    return row["source"] == UPLOADS or (is_place and is_local(place))


def draw(resources: Resources, row: Row, page: int, passage: str) -> bytes:
    """Draw a page of a document, or a picture.

    Args:
        resources: parts of the service.
        row: the document, which the caller may see.
        page: 1-based number of the page; 1 for a picture.
        passage: text to be outlined; empty for none.

    Returns:
        The drawing, as WebP.

    Raises:
        NotDrawn: its bytes are not there any more, or cannot be drawn within the limits.
        TransientError: its bytes cannot be read at the moment.
    """
    key = (row["content_hash"], row["media_type"], page, passage)
    found = _CACHE.get(key)
    if found is None:
        order = Order(row["media_type"], page, passage, resources.settings.extraction.memory_mb * 1024**2, _SECONDS)
        found = _drawn(order, _original(resources, row))
        _CACHE.put(key, found)
    return found


def _drawn(order: Order, content: bytes) -> bytes:
    command = [sys.executable, "-m", "parquetry.extract.drawing"]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        done = subprocess.run(
            command,
            input=order.line() + content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=2 * _SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotDrawn("drawing it takes too long") from None
    if done.returncode == 0:
        return done.stdout
    reason = done.stdout[:80].decode("ascii", "replace") if done.returncode == REFUSED else "its reader ended"
    raise NotDrawn(f"it cannot be drawn: {reason}")


def _original(resources: Resources, row: Row) -> bytes:
    """Return the bytes of a document, if they are those that it was read from."""
    if (row["size"] or 0) > MOST_BYTES:
        raise NotDrawn(f"the file has more than {MOST_BYTES // 1024**2} MiB")
    try:
        content = _upload(resources, row) if row["source"] == UPLOADS else _file(resources.settings, row)
    except (Damaged, BrokenDocument, FileNotFoundError) as error:
        raise NotDrawn("its file is not there any more") from error
    if content is None or content_hash(content) != row["content_hash"]:
        raise NotDrawn("its file has changed since it was read")
    return content


def _upload(resources: Resources, row: Row) -> bytes | None:
    upload = resources.uploads.get(row["namespace"], row["path"])
    same = upload is not None and upload.content_hash == row["content_hash"]
    return resources.uploads.read(upload) if upload is not None and same else None


def _file(settings: Settings, row: Row) -> bytes:
    try:
        scope = scope_of_source(settings, row["namespace"], row["source"])
        # Archives are opened by processes with limits alone: what lies in one is not shown.
        options = {**scope.settings.options, "archives": False}
        plain = replace(scope, settings=scope.settings.model_copy(update={"options": options}))
        source = open_source(plain, settings.corpus.root)
    except ParquetryError as error:
        raise NotDrawn("its source is not configured any more") from error
    if not isinstance(source, Opening):
        raise NotDrawn("its source gives out no single files")
    with source.open(row["path"]) as stream:
        return stream.read((row["size"] or 0) + 1)


class _Cache:
    """Drawings, the least recently used of which give way. Thread-safe."""

    def __init__(self) -> None:
        self._drawings: OrderedDict[Any, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Any) -> bytes | None:
        with self._lock:
            if key in self._drawings:
                self._drawings.move_to_end(key)
            return self._drawings.get(key)

    def put(self, key: Any, drawing: bytes) -> None:
        with self._lock:
            self._bytes += len(drawing) - len(self._drawings.pop(key, b""))
            self._drawings[key] = drawing
            while self._bytes > _CACHED_BYTES:
                self._bytes -= len(self._drawings.popitem(last=False)[1])


_CACHE = _Cache()
