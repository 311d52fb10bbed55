"""The source of the uploads of a namespace."""

from __future__ import annotations

from collections.abc import Iterator

from parquetry.errors import StorageError, TransientError
from parquetry.model import Item, Submission, Unlisted
from parquetry.settings.sections import Settings, parse_settings
from parquetry.sources.registry import Scope
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.store import Damaged, UploadStore


class UploadsSource:
    """Documents that were handed in to a namespace.

    Args:
        store: the store of all uploads.
        namespace: namespace of these.
    """

    def __init__(self, store: UploadStore, namespace: str) -> None:
        self._store, self._namespace = store, namespace

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List as `Source.scan` describes, from the manifests alone."""
        for found in self._store.listed(self._namespace, prefix):
            yield Unlisted("", str(found)) if isinstance(found, Damaged) else _item(found)

    def look(self, path: str) -> Item | Unlisted | None:
        """Return one document, found without a listing; None if it does not exist."""
        try:
            upload = self._store.get(self._namespace, path)
        except Damaged as error:
            return Unlisted(path, str(error))
        return None if upload is None else _item(upload)

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read the bytes of an upload as it is now."""
        try:
            upload = self._store.get(self._namespace, item.path)
            if upload is None:
                raise FileNotFoundError(2, "is not there any more", item.path)
            content = self._store.read(upload)
        except StorageError as error:
            raise TransientError("unreadable", str(error)) from error
        return _item(upload), content

    def hash(self, path: str) -> str:
        """Return the content hash of an upload, from its manifest."""
        upload = self._store.get(self._namespace, path)
        if upload is None:
            raise FileNotFoundError(2, "is not there any more", path)
        return upload.content_hash


def open_uploads(scope: Scope) -> UploadsSource:
    """Open the uploads of a namespace, at the place that their scope names.

    Raises:
        SettingsError: the place cannot be opened.
    """
    settings: Settings = parse_settings({"uploads": {"uri": scope.settings.uri}}, "uploads")
    return UploadsSource(UploadStore(settings), scope.namespace)


def _item(upload: Upload) -> Item:
    """Return the document of an upload."""
    return Item(
        path=upload.path,
        uri=upload.url or f"upload://{upload.namespace}/{upload.path}",
        size=upload.size,
        etag=upload.etag,
        modified_at=upload.updated_at,
        access=upload.access,
        submission=Submission(
            upload.filename,
            upload.content_type,
            upload.metadata,
            upload.uploaded_by,
            upload.created_at,
            upload.chunk_size,
            upload.describe,
        ),
    )
