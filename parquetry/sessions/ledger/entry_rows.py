"""A knowledge entry as a row of `documents`. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC

from parquetry import ids
from parquetry.model import ENTRY_TYPE, Access, DocumentRow, Scalar, Visibility
from parquetry.planning.rows import RunStamp, blank_row, removed_row
from parquetry.sessions.ledger.entry_state import EntryState
from parquetry.sessions.model import Entry

ENTRY_SOURCE = "entries"
"""source of the rows of entries"""


@dataclass(frozen=True, slots=True)
class EntryScope:
    """Exact audience of an entry: entries of different scopes are never compared."""

    namespace: str
    visibility: Visibility
    org_id: str | None
    user_id: str | None

    @property
    def sort_key(self) -> tuple[str, ...]:
        """Return a key that orders scopes."""
        return (self.namespace, self.visibility, self.org_id or "", self.user_id or "")


def scope_of(namespace: str, access: Access) -> EntryScope:
    """Return the scope of an access within a namespace."""
    return EntryScope(namespace, access.visibility, access.org_id, access.user_id)


def entry_uri(entry_id: str) -> str:
    """Return the URI of an entry, which is also its path."""
    return f"entry:{entry_id}"


@dataclass(frozen=True, slots=True)
class EntryStored:
    """Location of an entry's text and vector."""

    revision: int
    embedder: str
    """id of the model behind the vector"""
    tokens: int


def entry_row(entry: Entry, stored: EntryStored, state: EntryState, stamp: RunStamp) -> DocumentRow:
    """The first row of an entry.

    Args:
        entry: as it was made.
        stored: its text and vector.
        state: its state after all decisions.
        stamp: of the run that publishes it.
    """
    said = entry.text.encode()
    uri = entry_uri(entry.entry_id)
    return replace(
        blank_row(stamp),
        document_id=entry.entry_id,
        namespace=entry.namespace,
        source=ENTRY_SOURCE,
        path=uri,
        uri=uri,
        filename=uri,
        media_type=ENTRY_TYPE,
        size=len(said),
        modified_at=state.last_said or entry.valid_from,
        content_hash=ids.content_hash(said),
        revision=stored.revision,
        embedder=stored.embedder,
        characters=len(entry.text),
        chunks=1,
        tokens=stored.tokens,
        access=entry.access,
        metadata=_metadata(entry, state),
    )


def _metadata(entry: Entry, state: EntryState) -> dict[str, Scalar]:
    told: dict[str, Scalar] = {
        "kind": entry.kind,
        "confidence": entry.confidence,
        "valid_from": entry.valid_from.astimezone(UTC).isoformat(),
        "sessions": len(state.sessions),
    }
    if state.contradicts:
        told["contradicts"] = " ".join(state.contradicts)
    return told


def contradicted(row: DocumentRow) -> list[str]:
    """Return the ids of the entries that a row's entry contradicts."""
    return str(row.metadata.get("contradicts", "")).split()


def stored_of(row: DocumentRow) -> EntryStored:
    """Return the location of the text of a row's entry."""
    return EntryStored(row.revision, row.embedder or "", row.tokens)


def live_again(row: DocumentRow, state: EntryState, stamp: RunStamp) -> DocumentRow:
    """Return the next row of a live entry, made from the last one, which may be a tombstone."""
    metadata = {name: value for name, value in row.metadata.items() if name != "contradicts"}
    metadata["sessions"] = len(state.sessions)
    if state.contradicts:
        metadata["contradicts"] = " ".join(state.contradicts)
    return replace(
        row,
        removed=False,
        error=None,
        modified_at=state.last_said or row.modified_at,
        metadata=metadata,
        indexed_at=stamp.at,
        run_id=stamp.run_id,
    )


def retired_row(row: DocumentRow, stamp: RunStamp, decision_id: str) -> DocumentRow:
    """Return the tombstone of an entry that a decision retired."""
    return removed_row(row, stamp, f"entries/retired: by decision {decision_id}")
