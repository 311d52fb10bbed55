"""Uploads that were deleted or replaced, kept for a while so that this can be undone."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from parquetry import ids
from parquetry.errors import StorageError
from parquetry.serving.state.folder import PRIVATE_FILE
from parquetry.sources.uploads.manifest import Upload, decode, encode
from parquetry.storage.files.durable import PRIVATE, make_folder, sync

FOLDER = "aside"
UNDO_SECONDS = 3600
"""seconds for which a deletion can be undone"""
_MANIFEST, _CONTENT, _NOTHING = "manifest.json", "content", "nothing"


class SetAside:
    """The folder of a service with uploads as they were before a change. Safe to use from several processes.

    Args:
        state: state folder of the service.
    """

    def __init__(self, state: Path) -> None:
        self._root = state / FOLDER

    def keep(self, key: str, upload: Upload, content: bytes) -> None:
        """Keep an upload; what is kept under the same key stays as it is.

        Args:
            key: what the change was: each change has its own.
            upload: the upload as it was.
            content: its bytes.

        Raises:
            StorageError: it cannot be written.
        """
        folder = self._folder(key, upload.namespace, upload.path)
        if not (folder / _MANIFEST).exists():
            _write(folder, {_CONTENT: content, _MANIFEST: encode(upload)})

    def find(self, key: str) -> Iterator[tuple[Upload, bytes]]:
        """Yield the uploads of a change as they were, with their bytes, as far as they are kept."""
        for folder in _folders(self._root / ids.name_hash(key)):
            found = _read(folder)
            if found is not None:
                yield found

    def pass_over(self, namespace: str, path: str, etag: str, earlier: str) -> None:
        """Have an upload come back nowhere: what brought it back brings back what an earlier change had replaced.

        Args:
            namespace: namespace of the upload.
            path: its path.
            etag: its change token.
            earlier: key of the change that it was.

        Raises:
            StorageError: it cannot be written.
        """
        for change in _folders(self._root):
            folder = self._folder_in(change, namespace, path)
            found = _read(folder)
            if found is not None and found[0].etag == etag:
                before = _read(self._folder(earlier, namespace, path))
                if before is None:
                    _empty(folder)
                else:
                    _write(folder, {_CONTENT: before[1], _MANIFEST: encode(before[0])})

    def empty(self, key: str, namespace: str, path: str, instead: str | None) -> None:
        """Have a change bring nothing back.

        Args:
            key: what the change was.
            namespace: namespace of what it replaced.
            path: path of that.
            instead: change that brings that back; None for no one.

        Raises:
            StorageError: it cannot be written.
        """
        folder = self._folder(key, namespace, path)
        found = _read(folder)
        if found is not None:
            if instead is not None:
                self.keep(instead, *found)
            _empty(folder)

    def is_emptied(self, key: str, namespace: str, path: str) -> bool:
        """Return True if a change brings nothing back, because what it replaced was cancelled or removed since."""
        return (self._folder(key, namespace, path) / _NOTHING).exists()

    def drop(self, key: str) -> None:
        """Forget a change."""
        shutil.rmtree(self._root / ids.name_hash(key), ignore_errors=True)

    def sweep(self, in_use: Callable[[], Collection[str]]) -> int:
        """Forget the changes that cannot be undone any more; return their number.

        Args:
            in_use: returns the keys of changes that are kept for longer; called if there are old ones.
        """
        old = []
        for folder in _folders(self._root):
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > UNDO_SECONDS:
                    old.append(folder)
        kept = {ids.name_hash(key) for key in in_use()} if old else set()
        swept = [folder for folder in old if folder.name not in kept]
        for folder in swept:
            shutil.rmtree(folder, ignore_errors=True)
        return len(swept)

    def forget(self, user_id: str) -> None:
        """Delete what only a user may see, and what cannot be read."""
        for change in _folders(self._root):
            for folder in _folders(change):
                try:
                    upload = decode((folder / _MANIFEST).read_bytes())
                    own = (upload.access.visibility, upload.access.user_id) == ("individual", user_id)
                except (OSError, ValueError):
                    own = not (folder / _NOTHING).exists()
                if own:
                    shutil.rmtree(folder, ignore_errors=True)

    def _folder(self, key: str, namespace: str, path: str) -> Path:
        return self._folder_in(self._root / ids.name_hash(key), namespace, path)

    @staticmethod
    def _folder_in(change: Path, namespace: str, path: str) -> Path:
        return change / ids.name_hash(f"{namespace}/{path}")


def _folders(above: Path) -> list[Path]:
    try:
        return sorted(above.iterdir())
    except FileNotFoundError:
        return []


def _read(folder: Path) -> tuple[Upload, bytes] | None:
    """Return what a folder keeps; None if it is not there as a whole."""
    with suppress(FileNotFoundError, ValueError):
        upload = decode((folder / _MANIFEST).read_bytes())
        content = (folder / _CONTENT).read_bytes()
        if ids.content_hash(content) == upload.content_hash:
            return upload, content
    return None


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    try:
        make_folder(folder, PRIVATE)
        for name, content in files.items():
            unfinished = folder / f"{name}.unfinished"
            unfinished.touch(PRIVATE_FILE)
            unfinished.write_bytes(content)
            unfinished.replace(folder / name)
        sync(folder)
    except OSError as error:
        raise StorageError(f"{folder}: what is to be undone cannot be kept: {error.strerror}") from error


def _empty(folder: Path) -> None:
    _write(folder, {_NOTHING: b""})
    for name in (_MANIFEST, _CONTENT):
        (folder / name).unlink(missing_ok=True)
