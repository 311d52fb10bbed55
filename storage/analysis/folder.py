"""Files of analyses: one Parquet file per version, in the folder of the search index; deleting them loses nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from parquetry.errors import StorageError
from parquetry.settings.sections import SearchSettings
from parquetry.storage.files.durable import replace
from parquetry.storage.files.layout import Layout
from parquetry.storage.index.files import folder_of, make_place

KEPT = 2
"""number of files: readers of the one before may still be reading it"""
_NAME = re.compile(r"analysis-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class AnalysisFile:
    """A finished analysis."""

    path: Path
    version: int
    """version of the corpus"""

    @property
    def stamp(self) -> tuple[int, int]:
        """Version and time of writing: a version can be analyzed again."""
        return self.version, self.path.stat().st_mtime_ns


def newest_analysis(layout: Layout, settings: SearchSettings) -> AnalysisFile | None:
    """Return the analysis of the highest version; None if there is none."""
    return next(iter(_files(folder_of(layout, settings))), None)


def write_analysis(layout: Layout, settings: SearchSettings, version: int, table: pa.Table) -> AnalysisFile:
    """Write the analysis of a version, and delete all but the newest files.

    Args:
        layout: layout of the corpus.
        settings: give the location of the folder.
        version: version of the corpus.
        table: a row for each document.

    Raises:
        StorageError: it cannot be written.
    """
    folder = folder_of(layout, settings)
    written = AnalysisFile(folder / f"analysis-{version}.parquet", version)
    with _translated(folder):
        make_place(folder)
        building = written.path.with_suffix(".building")
        pq.write_table(table, building, compression="zstd")
        replace(building, written.path)
        for each in _files(folder)[KEPT:]:
            each.path.unlink(missing_ok=True)
    return written


def delete_analyses(folder: Path) -> None:
    """Delete all analyses.

    Args:
        folder: folder of the search index.
    """
    for each in _files(folder):
        each.path.unlink(missing_ok=True)


def _files(folder: Path) -> list[AnalysisFile]:
    """Return all finished files, newest first."""
    names: list[str] = []
    with suppress(FileNotFoundError, NotADirectoryError):
        names = [path.name for path in folder.iterdir()]
    versions = sorted((int(match[1]) for name in names if (match := _NAME.fullmatch(name))), reverse=True)
    return [AnalysisFile(folder / f"analysis-{version}.parquet", version) for version in versions]


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"the analysis in {folder} cannot be written: {error.strerror or error}") from error
