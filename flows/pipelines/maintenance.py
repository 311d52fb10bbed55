"""Upkeep of a corpus: compact it and delete unneeded files, where there is something to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parquetry.planning.compaction import MANY_FILES
from parquetry.planning.rows import new_stamp
from parquetry.plural import counted, size_of
from parquetry.settings.sections import Settings
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.analysis.folder import newest_analysis
from parquetry.storage.files.layout import Table
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.vacuum import vacuum


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """The result of maintenance."""

    version: int
    """version of `documents`"""
    files_before: Mapping[Table, int]
    """number of the files that were written together, by table"""
    files_after: Mapping[Table, int]
    """number of the files written in their place, by table"""
    rows_dropped: Mapping[Table, int]
    """number of the rows that no kept version needed, by table"""
    files_deleted: int
    bytes_deleted: int
    analyzed: int | None
    """version that was analyzed; None if none was asked for before, or it is up to date"""
    index_error: str | None
    """reason why the search index could not be brought up to date, and what to do; None if it was"""

    @property
    def is_idle(self) -> bool:
        """True if there was nothing to do."""
        return not self.files_before and not self.files_deleted and self.analyzed is None

    def summary(self) -> str:
        """Return what was done, in one line."""
        before, after = sum(self.files_before.values()), sum(self.files_after.values())
        dropped = counted(sum(self.rows_dropped.values()), "row")
        analyzed = "" if self.analyzed is None else f", analyzed version {self.analyzed}"
        return (
            f"compacted {counted(before, 'file')} to {after}, dropped {dropped}, "
            f"deleted {counted(self.files_deleted, 'file')} of {size_of(self.bytes_deleted)}{analyzed}"
        )


def run_maintenance(settings: Settings, least: int = MANY_FILES) -> MaintenanceReport | None:
    """Compact a corpus, and delete the files that no kept version is read from.

    Args:
        settings: settings with the corpus and its retention.
        least: number of small files of a table from which on they are written together.

    Returns:
        The report; None if there is no corpus yet.

    Raises:
        ParquetryError: something could not be read or written; running again continues.
    """
    root, single_writer = settings.corpus.root, settings.corpus.single_writer
    if not Lake.exists(root):
        return None
    lake = Lake(root, create=True, single_writer=single_writer)
    done = compact(lake, settings.retention, settings.search, new_stamp(), least)
    deleted = vacuum(lake, settings.retention, new_stamp())
    return MaintenanceReport(
        done.version,
        dict(done.files_before),
        dict(done.files_after),
        dict(done.rows_dropped),
        len(deleted.files),
        deleted.bytes,
        _analyzed(lake, settings),
        done.index_error,
    )


def _analyzed(lake: Lake, settings: Settings) -> int | None:
    """Bring an analysis that was once asked for up to date."""
    snapshot = lake.snapshot()
    present = newest_analysis(snapshot.layout, settings.search)
    if present is None or present.version >= snapshot.version:
        return None
    return analyze(snapshot, settings.search).version


def report_json(report: MaintenanceReport) -> dict[str, Any]:
    """Return a report as JSON."""
    return {
        "version": report.version,
        "files_before": dict(report.files_before),
        "files_after": dict(report.files_after),
        "rows_dropped": dict(report.rows_dropped),
        "files_deleted": report.files_deleted,
        "bytes_deleted": report.bytes_deleted,
        "analyzed": report.analyzed,
        "index_error": report.index_error,
    }
