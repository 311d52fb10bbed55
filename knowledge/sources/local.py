"""A folder on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pathspec

from knowledge import ids
from knowledge.errors import SettingsError, TransientError
from knowledge.model import Access, Item, Unlisted

DEFAULT_EXCLUDES = (
    ".*",
    "__pycache__/",
    "node_modules/",
    "venv/",
    "*.egg-info/",
    "Thumbs.db",
    "desktop.ini",
    "~$*",
    "*~",
    "*.swp",
    "*.tmp",
    "*.part",
    "*.crdownload",
)
"""What a folder holds that nobody means as a document: hidden files and folders, version control, caches, virtual
environments, lock and backup files of editors, litter of operating systems."""

_READS = 3


class LocalSource:
    """Documents in a folder and below.

    Symbolic links are followed to files inside the folder only; a link that leads out of it is not listed.

    Args:
        root: the folder.
        include: gitignore-style globs; empty for everything.
        exclude: gitignore-style globs, besides `DEFAULT_EXCLUDES`; `!glob` takes one of those back.
        access: who may see the documents.
        skip: a folder never entered: the corpus itself, when it stands inside the source.
    """

    cheap_reads = True

    def __init__(
        self,
        root: Path,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        access: Access | None = None,
        skip: Path | None = None,
    ) -> None:
        self._root = root.resolve()
        self._include = pathspec.GitIgnoreSpec.from_lines(include) if include else None
        self._exclude = pathspec.GitIgnoreSpec.from_lines([*DEFAULT_EXCLUDES, *exclude])
        self._access = access or Access()
        self._skip = str(skip.resolve()) if skip else None

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        if not self._root.is_dir():
            what = "is not a folder" if self._root.exists() else "does not exist"
            raise SettingsError(f"source folder {self._root} {what}; correct its uri or mount it")
        start = self._root / prefix
        if start.is_file():
            item = self._item(prefix, start)
            if item is not None:
                yield item
        elif start.is_dir():
            yield from self._walk(prefix.rstrip("/"), str(start))

    def _walk(self, relative: str, folder: str) -> Iterator[Item | Unlisted]:
        pending = [(relative, folder)]
        while pending:
            relative, folder = pending.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield Unlisted(relative, f"cannot list {folder}: {error.strerror}")
                continue
            for entry in entries:
                path = f"{relative}/{entry.name}" if relative else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not self._exclude.match_file(path + "/") and entry.path != self._skip:
                        pending.append((path, entry.path))
                elif not self._exclude.match_file(path) and (self._include is None or self._include.match_file(path)):
                    yield from self._listed(path, entry)

    def _listed(self, path: str, entry: os.DirEntry[str]) -> Iterator[Item | Unlisted]:
        try:
            if entry.is_symlink() and not self._inside(entry.path):
                return
            item = self._item(path, Path(entry.path))
        except FileNotFoundError:
            return
        except OSError as error:
            yield Unlisted(path, f"cannot read the properties of {entry.path}: {error.strerror}")
            return
        if item is not None:
            yield item

    def _inside(self, link: str) -> bool:
        target = Path(link).resolve()
        return target.is_file() and target.is_relative_to(self._root)

    def _item(self, path: str, file: Path) -> Item | None:
        status = file.stat()
        if not os.path.isfile(file):  # noqa: PTH113 - a stat of a DirEntry's path, not worth a Path method
            return None
        name = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return Item(
            path=path,
            uri=(self._root / name).as_uri(),
            size=status.st_size,
            etag=_etag(status),
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
            access=self._access,
        )

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one file; a file that changes while it is read is read again."""
        file = self._file(item.path)
        for _ in range(_READS):
            with file.open("rb") as stream:
                before = os.fstat(stream.fileno())
                content = stream.read()
                after = os.fstat(stream.fileno())
            if _etag(before) == _etag(after) and len(content) == after.st_size:
                modified = datetime.fromtimestamp(after.st_mtime, UTC)
                return replace(item, size=len(content), etag=_etag(after), modified_at=modified), content
        raise TransientError("changed-while-read", f"{item.path} kept changing while it was read")

    def hash(self, path: str) -> str:
        with self._file(path).open("rb") as stream:
            return ids.stream_hash(stream)

    def _file(self, path: str) -> Path:
        file = self._root / path
        if not file.resolve().is_relative_to(self._root):
            raise TransientError("vanished", f"{path} now leads out of {self._root}")
        return file


def _etag(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_size:x}"
