"""Next row of a document, derived from its last one and the outcome of the run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from parquetry import ids
from parquetry.errors import Verdict
from parquetry.model import Access, DocumentRow, Failure
from parquetry.planning.diff import Change
from parquetry.planning.fingerprint import Fingerprint, Fingerprints

LIMIT_REASONS = frozenset({"timeout", "memory", "crashed"})
"""failures that a busy machine may have caused: retried, but only a limited number of times"""


@dataclass(frozen=True, slots=True)
class RunStamp:
    """Id and time of the run that writes."""

    run_id: str
    at: datetime
    """UTC"""


def new_stamp() -> RunStamp:
    """Return the stamp of a run that starts now; run ids sort by time."""
    now = datetime.now(UTC)
    return RunStamp(f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}", now)


def blank_row(stamp: RunStamp) -> DocumentRow:
    """Return an empty row with only the run's stamp."""
    return DocumentRow(
        document_id="",
        namespace="",
        source="",
        path="",
        uri="",
        filename="",
        title=None,
        media_type=None,
        size=0,
        etag="",
        modified_at=stamp.at,
        content_hash="",
        revision=0,
        sequence=0,
        removed=False,
        fingerprint="",
        status="indexed",
        error=None,
        attempts=0,
        transient=False,
        extractor=None,
        embedder=None,
        pages=0,
        characters=0,
        chunks=0,
        tokens=0,
        access=Access(),
        metadata={},
        uploaded_by=None,
        created_at=stamp.at,
        indexed_at=stamp.at,
        run_id=stamp.run_id,
    )


@dataclass(frozen=True, slots=True)
class Processed:
    """Result of processing a document."""

    content_hash: str
    revision: int
    title: str | None
    media_type: str
    metadata: Mapping[str, Any]
    """of the document itself"""
    extractor: str
    embedder: str
    fingerprint: Fingerprint
    pages: int
    characters: int
    chunks: int
    tokens: int


def processed_row(change: Change, done: Processed, stamp: RunStamp) -> DocumentRow:
    """Return the row of a processed document; its new revision becomes the visible one."""
    draft = replace(_draft(change, stamp), status="indexed")
    if change.effort == "rechunk" and change.base is not None and change.base.status == "failed":
        # Its last good revision was redone; its present content is as unreadable as before.
        failed = change.base
        draft = replace(
            draft, status="failed", error=failed.error, attempts=failed.attempts, transient=failed.transient
        )
    return replace(
        draft,
        title=done.title or PurePosixPath(draft.filename).stem,
        media_type=done.media_type,
        content_hash=done.content_hash,
        revision=done.revision,
        fingerprint=str(done.fingerprint),
        extractor=done.extractor,
        embedder=done.embedder,
        pages=done.pages,
        characters=done.characters,
        chunks=done.chunks,
        tokens=done.tokens,
        metadata=_with_submission(change, done.metadata),
    )


def refused_row(
    change: Change,
    stage: str,
    verdict: Verdict,
    fingerprints: Fingerprints,
    stamp: RunStamp,
    *,
    content_hash: str,
    media_type: str | None,
    max_attempts: int,
    extracted: Mapping[str, Any] | None = None,
) -> DocumentRow:
    """Return the row of a skipped or failed document; a failed one keeps its last good revision.

    A document with new content that holds nothing to index (skipped) loses its old chunks, which are outdated.

    Args:
        change: planned change of the document.
        stage: stage at which it was refused.
        verdict: reason.
        fingerprints: of the present settings.
        stamp: stamp of the run.
        content_hash: of the bytes as read; empty if they were not.
        media_type: as far as known.
        max_attempts: runs that try again after a limit.
        extracted: an upload's own metadata, as its last good revision has them.
    """
    draft = _draft(change, stamp)
    base = change.base
    skipped = verdict.fate == "skip"
    if not skipped:
        media_type = media_type or draft.media_type
    fingerprint = fingerprints.of(media_type, None if change.item is None else change.item.chunk_size)
    attempts = 1 + _failures_in_a_row(base, content_hash, fingerprint)
    if not skipped and base is not None and base.revision:
        kept = Fingerprint.parse(base.fingerprint)
        fingerprint = replace(fingerprint, chunking=kept.chunking, embedding=kept.embedding)
    row = replace(
        draft,
        title=draft.title if base else PurePosixPath(draft.filename).stem,
        media_type=media_type,
        content_hash=content_hash,
        fingerprint=str(fingerprint),
        status="skipped" if skipped else "failed",
        error=f"{stage}/{verdict.reason}: {verdict.detail}",
        attempts=attempts,
        transient=verdict.fate == "retry" or (verdict.reason in LIMIT_REASONS and attempts < max_attempts),
    )
    if skipped:
        row = replace(row, revision=0, pages=0, characters=0, chunks=0, tokens=0)
    if change.item is not None and change.item.submission is not None:
        own = (extracted or {}) if row.revision else {}
        return replace(row, metadata=_with_submission(change, own))
    return row


def _failures_in_a_row(base: DocumentRow | None, content_hash: str, fingerprint: Fingerprint) -> int:
    """Count earlier failures of this content with the present extraction settings."""
    if base is None or base.status != "failed" or base.content_hash != content_hash:
        return 0
    same = Fingerprint.parse(base.fingerprint).extraction == fingerprint.extraction
    return base.attempts if same else 0


def kept_row(change: Change, stamp: RunStamp, extracted: Mapping[str, Any] | None = None) -> DocumentRow:
    """Return the row of a document with its stored text and vectors kept: moved, touched, or with new permissions.

    Args:
        change: planned change of the document.
        stamp: stamp of the run.
        extracted: an upload's own metadata, as stored with its text; other documents keep theirs.
    """
    base = change.base
    if base is None:
        raise ValueError(f"{change.document_id} has nothing stored to keep")
    draft = _draft(change, stamp)
    return replace(
        draft,
        status=base.status,
        error=base.error,
        attempts=base.attempts,
        transient=base.transient,
        title=_stem(draft) if base.title == _stem(base) else base.title,
        metadata=base.metadata
        if change.item is None or change.item.submission is None
        else _with_submission(change, extracted or {}),
    )


def _stem(row: DocumentRow) -> str:
    """Return the title of a document that has none."""
    return PurePosixPath(row.filename).stem


def _with_submission(change: Change, extracted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document's own metadata, and over them those that were handed in with it."""
    submission = change.item.submission if change.item else None
    return extracted if submission is None else {**extracted, **submission.metadata}


def removed_row(row: DocumentRow, stamp: RunStamp, why: str) -> DocumentRow:
    """Return the tombstone of a document.

    Args:
        row: last row of the document.
        stamp: stamp of the run that removes it.
        why: `stage/reason: detail`, as in `DocumentRow.error`.
    """
    return replace(row, removed=True, error=why, run_id=stamp.run_id, indexed_at=stamp.at)


def rows_without_work(change: Change, stamp: RunStamp, extracted: Mapping[str, Any] | None = None) -> list[DocumentRow]:
    """Return the rows of a change with effort `row`; arguments as for `kept_row`."""
    if change.action == "removed":
        return [removed_row(change.known, stamp, f"scan/gone: {change.reason}")] if change.known else []
    return [kept_row(change, stamp, extracted), *origin_removed(change, stamp)]


def origin_removed(change: Change, stamp: RunStamp) -> list[DocumentRow]:
    """Return the tombstone of the document that a moved one replaces."""
    if change.action != "moved" or change.origin is None:
        return []
    return [removed_row(change.origin, stamp, f"scan/moved: now {change.item.path if change.item else 'elsewhere'}")]


def failure_of(row: DocumentRow, *, known: bool = False) -> Failure:
    """Return the report entry of a skipped or failed document.

    Args:
        row: row with status `skipped` or `failed`.
        known: True if it failed in an earlier run and was not retried in this one.
    """
    place, _, detail = (row.error or "unknown/unknown: no reason was recorded").partition(": ")
    stage, _, reason = place.partition("/")
    return Failure(
        document_id=row.document_id,
        namespace=row.namespace,
        source=row.source,
        uri=row.uri,
        status="skipped" if row.status == "skipped" else "failed",
        stage=stage,
        reason=reason,
        detail=detail,
        attempts=row.attempts,
        run_id=row.run_id,
        known=known,
    )


def _draft(change: Change, stamp: RunStamp) -> DocumentRow:
    """Return the document's base row, updated from the listing and the run."""
    item = change.item
    if item is None:
        raise ValueError(f"{change.document_id} is not in its source any more")
    base = change.base or blank_row(stamp)
    submission = item.submission
    first = change.known.created_at if change.known else stamp.at
    return replace(
        base,
        document_id=change.document_id,
        namespace=change.namespace,
        source=change.source,
        path=item.path,
        uri=item.uri,
        filename=item.filename,
        size=item.size,
        etag=item.etag,
        modified_at=item.modified_at,
        removed=False,
        error=None,
        attempts=0,
        transient=False,
        access=item.access,
        uploaded_by=base.uploaded_by if submission is None else submission.uploaded_by,
        created_at=first if submission is None else submission.created_at,
        indexed_at=stamp.at,
        run_id=stamp.run_id,
    )


def new_revision(change: Change, stamp: RunStamp) -> int:
    """Return the revision that this run writes for a document."""
    return ids.revision(change.document_id, stamp.run_id)


def unfinished_revision(change: Change, stamp: RunStamp, batch: int) -> int:
    """Return the revision of chunks that are kept for their vectors alone, because others of their document have none.

    Another batch of the run may finish the document, under the revision of the run.

    Args:
        change: change of the document.
        stamp: the run.
        batch: number of the batch that writes the chunks.
    """
    return ids.revision(change.document_id, f"{stamp.run_id}\x00{batch}")
