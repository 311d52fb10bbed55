"""Checks of uploads: every manifest has its bytes, every document its upload."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from parquetry.errors import BrokenDocument, TransientError
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.store import Damaged, UploadStore
from parquetry.storage.database import Connection, tuples
from parquetry.storage.maintenance.findings import Finding, finding_of

SAMPLE_UPLOADS = 200
"""uploads of each namespace whose bytes a quick check reads"""


@dataclass(frozen=True, slots=True)
class UploadStep:
    """A step of a repair."""

    what: str
    do: Callable[[], object]
    lost: str = ""
    """bytes that only the people who handed them in can give back"""


def upload_findings(store: UploadStore, connection: Connection, *, quick: bool) -> Iterator[Finding]:
    """Check all uploads and the documents made of them.

    Args:
        store: the uploads.
        connection: connection to the newest version of the corpus.
        quick: True to read the bytes of a sample only.
    """
    published = set(tuples(connection, f"SELECT namespace, path FROM documents WHERE source = '{UPLOADS}'"))
    try:
        damaged, broken, kept = _looked_at(store, quick=quick)
        left = list(store.unnamed())
    except (TransientError, OSError) as error:
        yield Finding("uploads", "note", 1, f"the uploads in {store.root} could not be checked: {error}")
        return
    if damaged:
        yield finding_of("upload-manifest", "uploads have a manifest that cannot be read", damaged)
    if broken:
        what = "uploads have lost their bytes, or others are in their place; hand them in again"
        yield finding_of("upload-bytes", what, [upload.path for upload in broken])
    if gone := sorted(path for namespace, path in published if (namespace, path) not in kept):
        what = "documents can be searched, but not extracted again, because their uploads are gone"
        yield finding_of("upload-gone", what, gone, "note")
    if unpublished := sorted(path for namespace, path in kept if (namespace, path) not in published):
        yield finding_of(
            "upload-unpublished", "uploads are in no version; a refresh publishes them", unpublished, "note"
        )
    if left:
        what = f"files in {store.root} belong to no upload; `parquetry doctor --fix` deletes them"
        yield finding_of("upload-left", what, [posixpath.basename(name) for name in left], "note")


def upload_steps(store: UploadStore) -> Iterator[UploadStep]:
    """Yield what mends uploads: a manifest gets bytes that are still there, and files of no upload are deleted."""
    for upload in _looked_at(store, quick=False)[1]:
        found = store.other_bytes(upload)
        if found is None:
            yield UploadStep("", lambda: None, f"the bytes of {upload.path}; hand it in again")
        else:
            yield UploadStep(f"give {upload.path} its bytes back", partial(store.point, upload, found))
    for name in list(store.unnamed()):
        yield UploadStep(
            f"delete {posixpath.basename(name)}, which belongs to no upload", partial(store.delete_file, name)
        )


def _looked_at(store: UploadStore, *, quick: bool) -> tuple[list[str], list[Upload], set[tuple[str, str]]]:
    """Return messages on damaged manifests, the uploads without their bytes, and the places of all uploads."""
    damaged: list[str] = []
    broken: list[Upload] = []
    kept: set[tuple[str, str]] = set()
    for namespace in store.namespaces():
        found = list(store.listed(namespace))
        damaged.extend(str(each) for each in found if isinstance(each, Damaged))
        uploads = [each for each in found if isinstance(each, Upload)]
        kept.update((upload.namespace, upload.path) for upload in uploads)
        for upload in islice(uploads, SAMPLE_UPLOADS if quick else None):
            try:
                store.read(upload)
            except BrokenDocument:
                broken.append(upload)
    return damaged, broken, kept
