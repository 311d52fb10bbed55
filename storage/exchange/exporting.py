"""Export of the chunks that a caller may see as one file for another store."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from parquetry.errors import SettingsError
from parquetry.storage.exchange.chunk_stream import visible_chunks
from parquetry.storage.exchange.formats import WRITERS, Format
from parquetry.storage.files.durable import make_folder
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.search.filters import Filters


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A finished export."""

    path: Path
    version: int
    """version of the corpus"""
    documents: int
    rows: int
    without_vector: int
    """chunks left out because they have no vector"""
    embedder: str
    """id of the model of the vectors"""


def export_file(
    snapshot: Snapshot, filters: Filters, folder: Path, form: Format, *, overwrite: bool = False
) -> ExportedFile:
    """Write what a caller may see as one file, completely or not at all.

    Args:
        snapshot: snapshot of the corpus.
        filters: the caller, and which documents.
        folder: folder for the file.
        form: format of the file.
        overwrite: True to replace a file of its name.

    Raises:
        SettingsError: the file exists, the folder cannot be written to, or there is nothing to export.
        StorageError: the corpus cannot be read.
    """
    wanted = WRITERS[form]
    path = folder / wanted.file
    if path.exists() and not overwrite:
        raise SettingsError(f"{path} exists; --overwrite replaces it")
    with visible_chunks(snapshot, filters) as visible:
        try:
            make_folder(folder)
            handle, name = tempfile.mkstemp(prefix=".export-", dir=folder)
            aside = Path(name)
            try:
                with os.fdopen(handle, "wb") as stream:
                    done = wanted.write(visible, stream)
                aside.replace(path)
            finally:
                aside.unlink(missing_ok=True)
        except OSError as error:
            raise SettingsError(f"{folder} cannot be written: {error.strerror or error}") from error
        return ExportedFile(path, visible.version, visible.documents, done.rows, done.without_vector, visible.embedder)
