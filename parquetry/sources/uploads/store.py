"""The store of uploads: bytes and a manifest for each document that was handed in.

`<uri>/<namespace>/<digest of the path>/` holds the manifest and the file that it names. Bytes are written first, under
a name of their own, and then the manifest that names them; nothing is ever written over bytes that a manifest may name.
So a manifest without its bytes does not exist, whatever writes or ends at the same time, and of two that write one
document the last manifest wins.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from parquetry import ids
from parquetry.errors import BrokenDocument, ParquetryError, StorageError
from parquetry.model import Access, ChunkSize
from parquetry.settings.sections import Settings
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.paths import within
from parquetry.sources.uploads.files import UNFINISHED, Files, open_files, size_and_hash
from parquetry.sources.uploads.identity import (
    check_namespace,
    namespace_folder,
    owner_mark,
    upload_folder,
    upload_path,
    user_mark,
)
from parquetry.sources.uploads.manifest import MOST_BYTES, Kind, Upload, decode, encode, new_upload

FOLDER = "uploads"
"""folder of uploads below the root of a corpus"""
_MANIFEST = "manifest.json"
_LONGEST_PUT = timedelta(hours=1)
"""age from which on a file that no manifest names counts as left behind"""
_READS = 3


class Damaged(StorageError):
    """A manifest of an upload cannot be read."""


def root_of_uploads(settings: Settings) -> str:
    """Return the absolute folder or the URL in which uploads are kept."""
    root = settings.uploads.uri
    if root is None:
        corpus = settings.corpus.root
        return str(local_path(corpus).resolve() / FOLDER) if is_local(corpus) else f"{corpus.rstrip('/')}/{FOLDER}"
    return str(local_path(root).resolve()) if is_local(root) else root.rstrip("/")


class UploadStore:
    """Documents that were handed in. Safe to use from several threads and processes.

    Args:
        settings: give the place: `[uploads] uri`, or `uploads` below the root of the corpus.

    Raises:
        SettingsError: the place cannot be opened.
    """

    def __init__(self, settings: Settings) -> None:
        self.root = root_of_uploads(settings)
        self._files: Files = open_files(self.root)

    def put(
        self,
        namespace: str,
        name: str | None,
        content: bytes | Path,
        *,
        filename: str,
        content_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        access: Access | None = None,
        uploaded_by: str | None = None,
        kind: Kind = "upload",
        url: str | None = None,
        path: str | None = None,
        chunk_size: ChunkSize | None = None,
        describe: bool | None = None,
    ) -> tuple[Upload, bool]:
        """Keep a document; one of the same name and owner is replaced.

        Args:
            namespace: namespace of the document.
            name: name that identifies it, together with its owner; None for the hash of its content.
            content: bytes, or the file that holds them, which is read in blocks.
            filename: name that people see; empty for the last part of `name`.
            content_type: media type as declared, if known.
            metadata: JSON values; they win over the document's own.
            access: who may see it, and its tags.
            uploaded_by: user who hands it in.
            kind: how it came here.
            url: address of an imported page or video.
            path: path that identifies it, instead of one that follows from name and owner.
            chunk_size: size of its chunks; None for that in the settings.
            describe: have a picture described; None for the choice of the settings.

        Returns:
            The upload as it is kept, and True if anything changed.

        Raises:
            BrokenDocument: namespace, name, access or metadata are not valid, or the file changes while it is read.
            StorageError: it cannot be written; DiskFull if there is no space left.
            TransientError: the place of the uploads cannot be reached.
        """
        size, content_hash = size_and_hash(content)
        upload = new_upload(
            namespace,
            upload_path(name or content_hash, access or Access()) if path is None else path,
            filename=filename or (name or "").rstrip("/").rpartition("/")[2] or content_hash,
            content_type=content_type,
            size=size,
            content_hash=content_hash,
            metadata=metadata or {},
            access=access or Access(),
            uploaded_by=uploaded_by,
            kind=kind,
            url=url,
            now=datetime.now(UTC),
            chunk_size=chunk_size,
            describe=describe,
        )
        return self._kept(upload, content)

    def _kept(self, upload: Upload, content: bytes | Path) -> tuple[Upload, bool]:
        check_namespace(upload.namespace)
        encode(upload)
        known = self._known(upload.namespace, upload.path)
        if known is not None:
            if known.says_the_same_as(upload) and self._files.hash(self._place(known)) == upload.content_hash:
                return known, False
            upload = replace(upload, created_at=known.created_at)
        return self._write(upload, content, known), True

    def put_back(self, upload: Upload, content: bytes) -> None:
        """Keep an upload again exactly as it was, times included.

        Raises:
            BrokenDocument, StorageError, TransientError: as for `put`.
        """
        self._write(upload, content, self._known(upload.namespace, upload.path))

    def _write(self, upload: Upload, content: bytes | Path, known: Upload | None) -> Upload:
        """Write bytes, then the manifest, then delete the bytes that it replaces."""
        upload = replace(upload, file=_new_file(upload))
        place = self._place(upload)
        with ExitStack() as unfinished:
            unfinished.callback(self._discard, upload)
            # An erasure that ran in between may have taken the bytes for those of an earlier attempt.
            while not self._files.exists(place):
                self._write_bytes(upload, content)
                self._files.write(f"{_folder(upload.namespace, upload.path)}/{_MANIFEST}", encode(upload))
            unfinished.pop_all()
        if known is not None and known.file != upload.file:
            self._files.delete(self._place(known))
        return upload

    def _discard(self, upload: Upload) -> None:
        """Delete the bytes of an upload that failed, unless its manifest is there: a sync may fail after the write."""
        with suppress(OSError, ParquetryError):
            # Bytes that cannot be deleted are found by `doctor`.
            known = self._known(upload.namespace, upload.path)
            if known is None or known.file != upload.file:
                self._files.delete(self._place(upload))

    def _write_bytes(self, upload: Upload, content: bytes | Path) -> None:
        if self._files.write(self._place(upload), content) != upload.content_hash:
            raise BrokenDocument("changed-while-read", f"{upload.filename} changed while it was read")

    def get(self, namespace: str, path: str) -> Upload | None:
        """Return an upload; None if there is none.

        Raises:
            Damaged: its manifest cannot be read.
            TransientError: the place of the uploads cannot be reached.
        """
        name = f"{_folder(namespace, path)}/{_MANIFEST}"
        try:
            content = self._files.read(name)
        except FileNotFoundError:
            return None
        return self._decoded(name, content)

    def read(self, upload: Upload) -> bytes:
        """Return the bytes of an upload.

        Raises:
            BrokenDocument: `missing-bytes` or `damaged-bytes`; handing the document in again replaces them.
            TransientError: the place of the uploads cannot be reached, or the upload is being replaced all the time.
        """
        for _ in range(_READS):
            try:
                content = self._files.read(self._place(upload))
            except FileNotFoundError:
                now = self.get(upload.namespace, upload.path)
                if now is None or now.file == upload.file:
                    break
                # Replaced in between.
                upload = now
                continue
            if ids.content_hash(content) != upload.content_hash:
                raise BrokenDocument("damaged-bytes", "its kept bytes are not what was handed in; hand it in again")
            return content
        raise BrokenDocument("missing-bytes", "its kept bytes are gone; hand it in again")

    def delete(self, namespace: str, path: str) -> bool:
        """Delete an upload with its bytes.

        Returns:
            True if there was one.
        """
        known = self._known(namespace, path)
        folder = _folder(namespace, path)
        existed = self._files.exists(f"{folder}/{_MANIFEST}")
        self._files.delete(f"{folder}/{_MANIFEST}")
        if known is not None:
            self._files.delete(self._place(known))
        self._sweep(folder)
        return existed

    def each(self, namespace: str, prefix: str = "") -> Iterator[Upload]:
        """Yield the uploads of a namespace whose path is `prefix` or below it, in no particular order.

        Raises:
            Damaged: a manifest cannot be read.
            TransientError: the place of the uploads cannot be reached.
        """
        for found in self.listed(namespace, prefix):
            if isinstance(found, Damaged):
                raise found
            yield found

    def listed(self, namespace: str, prefix: str = "") -> Iterator[Upload | Damaged]:
        """Yield the uploads as `each` does, and a damaged manifest as an error."""
        folder = namespace_folder(namespace)
        names = [name for name in self._files.tree(folder) if name.endswith(f"/{_MANIFEST}")]
        for name, content in self._files.read_all(names):
            try:
                upload = self._decoded(name, content)
            except Damaged as error:
                yield error
                continue
            if within(upload.path, prefix):
                yield upload

    def namespaces(self) -> list[str]:
        """Return the namespaces that have uploads, sorted."""
        found = set()
        for folder in self._files.folders():
            names = (name for name in self._files.tree(folder) if name.endswith(f"/{_MANIFEST}"))
            if not folder.startswith("="):
                found.update([folder] if any(names) else [])
                continue
            for name, content in self._files.read_all(list(names)):
                with suppress(Damaged):
                    found.add(self._decoded(name, content).namespace)
                    break
        return sorted(found)

    # --- upkeep

    def unnamed(self) -> Iterator[str]:
        """Yield the files that no manifest names, without those that may be being written."""
        for folder in self._files.folders():
            by_folder: dict[str, list[str]] = {}
            for name in self._files.tree(folder):
                above, _, file = name.rpartition("/")
                by_folder.setdefault(above, []).append(file)
            for above, files in by_folder.items():
                yield from (f"{above}/{file}" for file in self._unnamed(above, files) if _is_left_behind(file))

    def other_bytes(self, upload: Upload) -> str | None:
        """Return a file in an upload's folder, other than its own, that holds its bytes; None if there is none."""
        folder = _folder(upload.namespace, upload.path)
        for file in self._files.files(folder):
            if file != upload.file and file.startswith(f"{upload.content_hash}-") and not file.endswith(UNFINISHED):
                with suppress(FileNotFoundError):
                    if ids.content_hash(self._files.read(f"{folder}/{file}")) == upload.content_hash:
                        return file
        return None

    def point(self, upload: Upload, file: str) -> None:
        """Have the manifest of an upload name another file with its bytes."""
        pointing = replace(upload, file=file)
        self._files.write(f"{_folder(upload.namespace, upload.path)}/{_MANIFEST}", encode(pointing))

    def delete_file(self, name: str) -> None:
        """Delete a file that `unnamed` yields."""
        self._files.delete(name)
        self._files.delete_folder(name.rpartition("/")[0])

    def forget(self, user_id: str) -> int:
        """Delete every upload that only a user may see, and what was left of earlier ones.

        Returns:
            Number of deleted uploads.
        """
        mark, count = user_mark(user_id), 0
        for namespace in self.namespaces():
            own = [
                found
                for found in self.listed(namespace)
                if isinstance(found, Upload)
                and (found.access.visibility, found.access.user_id) == ("individual", user_id)
            ]
            count += sum(self.delete(namespace, upload.path) for upload in own)
        for folder in self._files.folders():
            for name in list(self._files.tree(folder)):
                file = name.rpartition("/")[2]
                if f"-{mark}" in file or _is_unfinished_manifest(file):
                    self.delete_file(name)
        return count

    # --- below

    def _known(self, namespace: str, path: str) -> Upload | None:
        """Return an upload that is to be replaced; a damaged manifest is replaced like none."""
        try:
            return self.get(namespace, path)
        except Damaged:
            return None

    def _decoded(self, name: str, content: bytes) -> Upload:
        wrong = "is too large" if len(content) > 2 * MOST_BYTES else ""
        try:
            upload = decode(b"" if wrong else content)
            if f"{_folder(upload.namespace, upload.path)}/{_MANIFEST}" == name:
                return upload
            wrong = "belongs to another document"
        except ValueError as error:
            wrong = wrong or str(error)
        raise Damaged(f"{self.root}/{name}: {wrong}; hand the document in again, or delete the file")

    def _place(self, upload: Upload) -> str:
        return f"{_folder(upload.namespace, upload.path)}/{upload.file}"

    def _sweep(self, folder: str) -> None:
        """Delete the files of a folder that were left behind, and the folder if it is empty."""
        for file in self._unnamed(folder, self._files.files(folder)):
            if _is_left_behind(file):
                self._files.delete(f"{folder}/{file}")
        self._files.delete_folder(folder)
        self._files.delete_folder(folder.rpartition("/")[0])

    def _unnamed(self, folder: str, files: Iterable[str]) -> list[str]:
        """Return those of the files of a folder that its manifest does not name; none if that cannot be read."""
        files = list(files)
        if _MANIFEST not in files:
            return files
        named = {_MANIFEST}
        try:
            for name, content in self._files.read_all([f"{folder}/{_MANIFEST}"]):
                named.add(self._decoded(name, content).file)
        except Damaged:
            return []
        return [file for file in files if file not in named]


def _folder(namespace: str, path: str) -> str:
    return f"{namespace_folder(namespace)}/{upload_folder(path)}"


def _new_file(upload: Upload) -> str:
    """Return the name of a file with the bytes of an upload, different each time: hash, time, owner."""
    return f"{upload.content_hash}-{time.time_ns():x}{secrets.token_hex(4)}-{owner_mark(upload.access)}"


def _is_left_behind(file: str) -> bool:
    """Return True if a file that no manifest names is too old to get one."""
    if _is_unfinished_manifest(file):
        return True
    parts = file.split("-")
    try:
        begun = int(parts[1][:-8], 16) / 1e9
    except (IndexError, ValueError):
        return False
    return time.time() - begun > _LONGEST_PUT.total_seconds()


def _is_unfinished_manifest(file: str) -> bool:
    """Return True for a manifest that is being written: one that is deleted meanwhile is written again."""
    return file.startswith(f"{_MANIFEST}.") and file.endswith(UNFINISHED)
