"""Outcome of small writes: the document of each upload, or the reason for which there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from parquetry.errors import OutageError
from parquetry.model import DocumentRow
from parquetry.planning.report import RunReport
from parquetry.planning.rows import LIMIT_REASONS, failure_of
from parquetry.plural import counted
from parquetry.serving.jobs.context import Failed
from parquetry.serving.jobs.published_rows import Key, Place, key_of


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The end of a job."""

    result: Mapping[str, Any]
    failure: Failed | None = None
    cancelled: str | None = None
    """one sentence, if it was cancelled while it was carried out"""


@dataclass(frozen=True, slots=True)
class PublishedWrites:
    """The state of the corpus after the run."""

    version: int
    report: RunReport | None
    """None if there was nothing to run for"""
    rows: Mapping[Key, DocumentRow]
    """current rows of all documents concerned"""
    removed: Set[Key]
    """documents that were to be removed"""
    kept: Set[Key]
    """those of them that were not"""
    held: Set[Place]
    """uploads that are not published because of the budget"""
    before: int
    """version before the first attempt at these jobs"""

    def handed_in(self, places: Sequence[Place]) -> JobOutcome:
        """Return the outcome of a job that handed in uploads."""
        failures = [self._failure(place) for place in places]
        documents = [self._document(place, failed) for place, failed in zip(places, failures, strict=True)]
        return JobOutcome({"version": self.version, "documents": documents}, next(filter(None, failures), None))

    def taken_out(self, keys: Sequence[Key], chunks: Mapping[Key, int]) -> JobOutcome:
        """Return the outcome of a job that removed documents.

        Args:
            keys: the documents.
            chunks: their numbers of chunks before.
        """
        removed = [{"document_id": key[1], "chunks": chunks.get(key, 0)} for key in keys]
        result = {"version": self.version, "version_before": self.before, "removed": removed}
        return JobOutcome(result, self._not_removed(keys))

    def cleared(self, keys: Sequence[Key]) -> JobOutcome:
        """Return the outcome of a job that removed all uploads of an owner."""
        return JobOutcome({"version": self.version, "removed": len(keys)}, self._not_removed(keys))

    def _not_removed(self, keys: Sequence[Key]) -> Failed | None:
        kept = [key for key in keys if key in self.kept]
        if not kept:
            return None
        why = "" if self.report is None else "; ".join(self.report.outages)
        still = f"{len(kept)} of {counted(len(keys), 'document')} still published; try again. {why}"
        return Failed("outage", still.rstrip())

    def _failure(self, place: Place) -> Failed | None:
        """Return the reason for which an upload is not indexed; None if it is, or if it was removed again."""
        key = key_of(place)
        row, error = self.rows.get(key), None if self.report is None else self.report.error
        if place in self.held or (row is None and self.report is not None and self.report.refused):
            return Failed("budget", str(error))
        if row is None and key in self.removed:
            return None
        if isinstance(error, OutageError) and (row is None or row.transient):
            return Failed("outage", str(error))
        if row is None:
            return Failed("vanished", f"{place[1]} was removed before it was indexed; hand it in again")
        if row.status == "indexed":
            return None
        found = failure_of(row)
        if row.transient and found.reason not in LIMIT_REASONS:
            told = f"{found.stage}/{found.reason}: {found.detail}"
            return Failed("outage", f"{row.filename}: {told}; what was handed in is kept, try again")
        return Failed(found.reason, f"{row.filename}: {found.detail}")

    def _document(self, place: Place, failed: Failed | None) -> dict[str, Any]:
        namespace, path = place
        row, error = self.rows.get(key_of(place)), None
        if failed is not None:
            stage = failure_of(row).stage if row is not None and row.status != "indexed" else "publish"
            error = {"stage": stage, "reason": failed.reason, "detail": failed.detail}
        status = "failed" if error else "removed"
        return {
            "document_id": key_of(place)[1],
            "namespace": namespace,
            "path": path,
            "filename": path.rpartition("/")[2] if row is None else row.filename,
            "media_type": None if row is None else row.media_type,
            "chunks": 0 if row is None else row.chunks,
            "status": status if row is None else row.status,
            "error": error,
            "warnings": [] if row is None else self._notes(row.uri),
        }

    def _notes(self, uri: str) -> list[str]:
        notes = () if self.report is None else self.report.warnings
        return [note.removeprefix(f"{uri}: ") for note in notes if note.startswith(f"{uri}: ")]
