"""Chat sessions and their files as rows of `documents`: reading progress, settings used, owner. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from parquetry import ids
from parquetry.errors import Verdict
from parquetry.model import SESSION_TYPE, TRANSCRIPTS_TYPE, Access, DocumentRow, Item, Scalar, Visibility
from parquetry.planning.rows import RunStamp, blank_row
from parquetry.sessions.model import Owner
from parquetry.sessions.windows import Mark, Stretch
from parquetry.settings.source import SourceSettings

MEMBER = "!/"
"""separator between the path of a file and the name of a session in it"""


FileKey = tuple[str, str, str]
"""key of a file of sessions: namespace, source, path"""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A listed file that may hold chat sessions."""

    namespace: str
    source: str
    item: Item
    owner: Owner
    known: DocumentRow | None
    """its current row; None if it was never read"""

    @property
    def key(self) -> FileKey:
        return self.namespace, self.source, self.item.path


def owner_of(settings: SourceSettings, namespace: str, access: Access) -> Owner:
    """Return the owner of a file's sessions, with the maximum visibility of their entries.

    Args:
        settings: of the source; a visibility set there permits sharing that far.
        namespace: of the source.
        access: of the file.
    """
    said = "visibility" in settings.model_fields_set or access.visibility != settings.visibility
    narrowest: Visibility = "individual" if access.user_id else "organization" if access.org_id else "public"
    widest = access.visibility if said else narrowest
    return Owner(namespace, access.org_id, access.user_id, widest, access.tags)


def reason_to_read(file: SessionFile, fingerprint: str) -> str | None:
    """Return the reason to read a file; None if nothing in it can be new.

    Args:
        file: as it was listed.
        fingerprint: of the prompt, model, owner and settings that sessions are read with now.
    """
    known = file.known
    if known is None:
        return "new"
    if known.fingerprint != fingerprint:
        return "other prompt, model, owner or settings"
    if known.etag != file.item.etag:
        return "changed"
    return "failed before" if known.status == "failed" and known.transient else None


def file_id(namespace: str, source: str, path: str) -> str:
    """Return the id of the row of a file of sessions; it differs from the id of the same file as a document."""
    return ids.document_id(namespace, source, f"{path}!")


def session_path(path: str, name: str) -> str:
    """Return the path of a session: its file and its name there."""
    return f"{path}{MEMBER}{name}"


def session_id(namespace: str, source: str, path: str, name: str) -> str:
    """Return the id of a session, the same at every read of its file."""
    return ids.document_id(namespace, source, session_path(path, name))


def mark_of(row: DocumentRow) -> Mark | None:
    """Return the position up to which a session was read; None if it never was."""
    messages, digest = row.metadata.get("messages"), row.metadata.get("hash")
    return Mark(messages, digest) if isinstance(messages, int) and isinstance(digest, str) and messages else None


def quarantined_of(row: DocumentRow) -> tuple[Stretch, ...]:
    """Return the messages of a session from which nothing was learned because the replies were invalid."""
    told = str(row.metadata.get("quarantined") or "")
    stretches = (part.split("-") for part in told.split())
    return tuple((int(start), int(end)) for start, end in stretches)


def file_key_of(row: DocumentRow) -> FileKey:
    """Return the key of a session's file."""
    return row.namespace, row.source, str(row.metadata.get("file"))


def file_row(file: SessionFile, fingerprint: str, content_hash: str, sessions: int, stamp: RunStamp) -> DocumentRow:
    """Return the row of a file with all its sessions read."""
    draft = _draft(file, stamp)
    return replace(
        draft,
        document_id=file_id(file.namespace, file.source, file.item.path),
        media_type=TRANSCRIPTS_TYPE,
        content_hash=content_hash,
        fingerprint=fingerprint,
        metadata={"sessions": sessions},
        created_at=file.known.created_at if file.known else stamp.at,
    )


def session_row(
    file: SessionFile,
    known: DocumentRow | None,
    name: str,
    title: str | None,
    mark: Mark,
    at: datetime,
    fingerprint: str,
    stamp: RunStamp,
    quarantined: Iterable[Stretch] = (),
) -> DocumentRow:
    """Return the row of a session that was read to its end.

    Args:
        file: that holds it.
        known: its current row, if there is one.
        name: of the session in the file.
        title: of the session.
        mark: of all its messages.
        at: UTC, of its last message.
        fingerprint: of the prompt, model, owner and settings that it was read with.
        stamp: of the run.
        quarantined: messages from which nothing was learned because the replies were invalid.
    """
    told: dict[str, Scalar] = {"messages": mark.messages, "hash": mark.hash, "file": file.item.path}
    if left := " ".join(f"{start}-{end}" for start, end in sorted(set(quarantined))):
        told["quarantined"] = left
    path = session_path(file.item.path, name)
    return replace(
        _draft(file, stamp),
        document_id=ids.document_id(file.namespace, file.source, path),
        path=path,
        uri=session_uri(file.item.uri, name),
        filename=name or PurePosixPath(file.item.path).name,
        title=title or name or PurePosixPath(file.item.path).stem,
        media_type=SESSION_TYPE,
        modified_at=at,
        content_hash=mark.hash,
        fingerprint=fingerprint,
        metadata=told,
        created_at=known.created_at if known else stamp.at,
    )


def session_uri(uri: str, name: str) -> str:
    """Return the URI of a session: its file, and its name if the file holds several."""
    return f"{uri}#{name}" if name else uri


def failed_row(row: DocumentRow, known: DocumentRow | None, stage: str, verdict: Verdict) -> DocumentRow:
    """Return the row of a session or file that could not be read to its end, keeping the progress made before.

    Args:
        row: as for success.
        known: its current row, if there is one.
        stage: of the failure.
        verdict: reason of the failure.
    """
    same = known is not None and (known.content_hash, known.fingerprint) == (row.content_hash, row.fingerprint)
    before = known.attempts if known is not None and same and known.status == "failed" else 0
    metadata = row.metadata
    if row.media_type == SESSION_TYPE:
        metadata = {**(known.metadata if known is not None else {}), "file": row.metadata["file"]}
    return replace(
        row,
        status="skipped" if verdict.fate == "skip" else "failed",
        error=f"{stage}/{verdict.reason}: {verdict.detail}",
        attempts=before + 1,
        transient=verdict.fate == "retry",
        metadata=metadata,
    )


def _draft(file: SessionFile, stamp: RunStamp) -> DocumentRow:
    item, owner = file.item, file.owner
    # The messages belong to their user, however widely the entries learned from them are visible.
    visibility = "individual" if owner.user_id else "organization" if owner.org_id else owner.widest
    return replace(
        blank_row(stamp),
        namespace=file.namespace,
        source=file.source,
        path=item.path,
        uri=item.uri,
        filename=PurePosixPath(item.path).name,
        title=PurePosixPath(item.path).stem,
        size=item.size,
        etag=item.etag,
        modified_at=item.modified_at,
        access=Access(visibility, owner.org_id, owner.user_id, owner.tags),
    )
