"""Archives as folders: the members of an archive are documents of the source that holds it."""

from __future__ import annotations

import io
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable
from urllib.parse import quote

from parquetry import ids
from parquetry.errors import BrokenDocument, DocumentError, TransientError
from parquetry.freed_memory import Relievable
from parquetry.model import Item, Unlisted
from parquetry.sources.archive.members import MAX_HELD_BYTES, Member
from parquetry.sources.base import Hashing, Remembering, Source
from parquetry.sources.paths import SEPARATOR, chain, is_archive, within
from parquetry.sources.selection import Selection

if TYPE_CHECKING:
    from parquetry.sources.archive.file import Archive

MAX_DEPTH = 2
"""An archive within an archive is opened; a third level is not."""
_KEPT_OPEN = 8


@runtime_checkable
class Opening(Protocol):
    """Source that can read parts of a document: a local disk."""

    def open(self, path: str) -> BinaryIO:
        """Open one document for random access."""
        ...


class ArchivedSource:
    """Source with archives listed as folders; all other documents are passed through.

    A refused member fails when it is fetched, so that it counts as a failed or skipped document. An archive that cannot
    be opened is listed both as such a document and as an unlisted place: nothing is removed until it can be opened.

    Args:
        source: lists and reads the archives.
        selection: globs that select members.
    """

    def __init__(self, source: Source, selection: Selection) -> None:
        self._source = source
        self._selection = selection
        self._listed: dict[str, Item] = {}
        """archives of the source itself, by path"""
        self._open: OrderedDict[str, Archive] = OrderedDict()
        """open archives by path, least recently used first"""
        self._lock = threading.RLock()
        if isinstance(source, Hashing):
            self._hash_of = source.hash
            self.hash = self._hash
        if isinstance(source, Remembering):
            self.remember = source.remember

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List as `Source.scan` describes; a prefix may be an archive or lead into one."""
        for found in self._source.scan(chain(prefix)[0]):
            if isinstance(found, Item) and _opens(found.path):
                self._remember(found)
                yield from (each for each in self._members(found, 1) if within(each.path, prefix))
            else:
                yield found

    def _remember(self, archive: Item) -> None:
        """Close open archives that changed since they were opened."""
        with self._lock:
            before = self._listed.get(archive.path)
            self._listed[archive.path] = archive
            if before is not None and before.etag != archive.etag:
                for path in [path for path in self._open if within(path, archive.path)]:
                    self._open.pop(path).close()

    def _members(self, archive: Item, depth: int) -> Iterator[Item | Unlisted]:
        try:
            members = list(self._archive(archive.path).members.values())
        except FileNotFoundError:
            return
        except BrokenDocument as error:
            yield archive
            yield Unlisted(archive.path, f"cannot be opened: {error.detail}")
            return
        except (TransientError, OSError) as error:
            yield Unlisted(archive.path, f"cannot be opened: {error}")
            return
        for member in members:
            item = _item(archive, member)
            if self._selection.leaves_out(item.path):
                continue
            if _opens(item.path) and member.refusal is None and depth < MAX_DEPTH:
                yield from self._members(item, depth + 1)
            else:
                yield item

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Fetch as `Source.fetch` describes."""
        *outer, name = chain(item.path)
        if not outer and not _opens(name):
            return self._source.fetch(item)
        with self._lock:
            if not _opens(name):
                content = self._archive(SEPARATOR.join(outer)).read(name)
                return replace(item, size=len(content)), content
            if len(outer) >= MAX_DEPTH:
                raise BrokenDocument("nested-too-deep", f"archives are opened {MAX_DEPTH} deep; unpack this one")
            # It was listed as a document because it could not be opened; opening it again gives the reason.
            self._archive(item.path)
        raise TransientError("changed-while-read", f"{item.path} can be opened now; the next refresh lists its members")

    def give_memory_back(self) -> None:
        """Close the archives, some of which are held in memory; the next read of a member opens its archive again."""
        if isinstance(self._source, Relievable):
            self._source.give_memory_back()
        # Nobody waits for a member that is being read.
        if self._lock.acquire(blocking=False):
            try:
                _close(self._open)
            finally:
                self._lock.release()

    def _hash(self, path: str) -> str:
        *outer, name = chain(path)
        if not outer:
            return self._hash_of(path)
        with self._lock:
            try:
                return ids.content_hash(self._archive(SEPARATOR.join(outer)).read(name))
            except DocumentError as error:
                raise OSError(str(error)) from error

    def _archive(self, path: str) -> Archive:
        with self._lock:
            if not self._open:
                # Registered on first use: an interrupt is raised as such unless it falls into a finalizer.
                weakref.finalize(self, _close, self._open)
            archive = self._open.pop(path, None) or self._opened(path)
            self._open[path] = archive
            while len(self._open) > 1 and (
                len(self._open) > _KEPT_OPEN or sum(each.held for each in self._open.values()) > MAX_HELD_BYTES
            ):
                self._open.popitem(last=False)[1].close()
            return archive

    def _opened(self, path: str) -> Archive:
        # Most folders hold no archive, and every run waits for this module.
        from parquetry.sources.archive.file import open_archive

        *outer, name = chain(path)
        if outer:
            archive = self._archive(SEPARATOR.join(outer))
            _check_held(archive.members[name].size if name in archive.members else 0)
            content = archive.read(name)
            return open_archive(name, io.BytesIO(content), len(content), in_memory=True)
        if isinstance(self._source, Opening):
            stream = self._source.open(path)
            return open_archive(name, stream, os.fstat(stream.fileno()).st_size, in_memory=False)
        item = self._listed.get(path)
        if item is None:
            raise FileNotFoundError(2, "was not listed", path)
        _check_held(item.size)
        _, content = self._source.fetch(item)
        return open_archive(name, io.BytesIO(content), len(content), in_memory=True)


def _opens(path: str) -> bool:
    """Return True if a file of this name is listed as a folder; without its extra, a `.7z` stays one document."""
    if not is_archive(path):
        return False
    from parquetry.sources.archive import seven_zip

    return not path.lower().endswith(seven_zip.SUFFIX) or seven_zip.available()


def _close(archives: OrderedDict[str, Archive]) -> None:
    while archives:
        archives.popitem()[1].close()


def _check_held(size: int) -> None:
    if size > MAX_HELD_BYTES:
        raise BrokenDocument("too-large", f"has {size} bytes; to be opened here it may have {MAX_HELD_BYTES}")


def _item(archive: Item, member: Member) -> Item:
    # The member's token alone would not do: a damaged member has the same one as the intact member that replaces it.
    token = f"{archive.etag}/{member.token}"
    return Item(
        path=f"{archive.path}{SEPARATOR}{member.name}",
        uri=f"{archive.uri}{SEPARATOR}{quote(member.name)}",
        size=member.size,
        etag=f"{token} {member.refusal.reason}" if member.refusal else token,
        modified_at=member.modified_at or archive.modified_at,
        access=archive.access,
    )
