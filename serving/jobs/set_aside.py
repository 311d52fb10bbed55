"""Uploads that were deleted or replaced, kept for a while so that this can be undone."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
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
_MANIFEST, _CONTENT = "manifest.json", "content"


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
        if (folder / _MANIFEST).exists():
            return
        try:
            make_folder(folder, PRIVATE)
            for name, written in ((_CONTENT, content), (_MANIFEST, encode(upload))):
                unfinished = folder / f"{name}.unfinished"
                unfinished.touch(PRIVATE_FILE)
                unfinished.write_bytes(written)
                unfinished.replace(folder / name)
            sync(folder)
        except OSError as error:
            raise StorageError(f"{folder}: what is to be undone cannot be kept: {error.strerror}") from error

    def find(self, key: str) -> Iterator[tuple[Upload, bytes]]:
        """Yield the uploads of a change as they were, with their bytes, as far as they are kept."""
        for folder in _folders(self._root / ids.name_hash(key)):
            with suppress(FileNotFoundError, ValueError):
                upload = decode((folder / _MANIFEST).read_bytes())
                content = (folder / _CONTENT).read_bytes()
                if ids.content_hash(content) == upload.content_hash:
                    yield upload, content

    def drop(self, key: str) -> None:
        """Forget a change."""
        shutil.rmtree(self._root / ids.name_hash(key), ignore_errors=True)

    def sweep(self) -> int:
        """Forget the changes that cannot be undone any more; return their number."""
        count = 0
        for folder in _folders(self._root):
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > UNDO_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)
                    count += 1
        return count

    def forget(self, user_id: str) -> None:
        """Delete what only a user may see, and what cannot be read."""
        for change in _folders(self._root):
            for folder in _folders(change):
                try:
                    upload = decode((folder / _MANIFEST).read_bytes())
                    own = (upload.access.visibility, upload.access.user_id) == ("individual", user_id)
                except (OSError, ValueError):
                    own = True
                if own:
                    shutil.rmtree(folder, ignore_errors=True)

    def _folder(self, key: str, namespace: str, path: str) -> Path:
        return self._root / ids.name_hash(key) / ids.name_hash(f"{namespace}/{path}")


def _folders(above: Path) -> list[Path]:
    try:
        return sorted(above.iterdir())
    except FileNotFoundError:
        return []
