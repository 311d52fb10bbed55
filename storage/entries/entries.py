"""Publish new entries with text and vector, the decisions behind them, and the sessions that were read.

An entry is a row of `documents` with a text and a chunk of its own, so that one commit makes all of it visible. Rows of
`texts`, `chunks`, `entries` and `decisions` are registered before and have no effect without that commit.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquetry import ids
from parquetry.errors import StorageError
from parquetry.model import Chunk, DocumentRow, Part
from parquetry.planning.rows import RunStamp
from parquetry.sessions.ledger.entry_rows import (
    EntryStored,
    contradicted,
    entry_row,
    live_again,
    retired_row,
    stored_of,
)
from parquetry.sessions.ledger.entry_state import UNKNOWN, EntryState, entry_states
from parquetry.sessions.model import Decision, Entry
from parquetry.storage.database import Connection, each_row
from parquetry.storage.files.layout import entries_shard_name
from parquetry.storage.lake import schema
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.knowledge_views import IS_ENTRY
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.ledger import history_of, taken_back, write_decisions
from parquetry.storage.lake.shards import RevisionChunks, Shard, StoredText, write_chunks, write_shard, write_texts
from parquetry.storage.lake.snapshot_views import connect_snapshot

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EntryText:
    """An entry as it was created, with its vector."""

    entry: Entry
    embedder: str
    """id of the model"""
    vector: Vector
    """float32[dimension]; zeros if the model gives no vector for the text"""
    tokens: int


@dataclass(frozen=True, slots=True)
class Learned:
    """The results of a run that are published together."""

    decisions: Sequence[Decision] = ()
    """decisions in the order in which they were made"""
    texts: Sequence[EntryText] = ()
    """texts of every entry that a decision adds, and of live entries whose vectors are of another model and are
    replaced"""
    rows: Sequence[DocumentRow] = ()
    """rows of sessions and of their files"""


@dataclass(frozen=True, slots=True)
class PublishedEntries:
    """The result of a publish."""

    version: int
    """version of `documents`"""
    rows: tuple[DocumentRow, ...]
    """rows of the entries that changed, including tombstones"""


class EntryWriter:
    """Write what one run learned; texts and vectors are written once, however often the publish is retried.

    Args:
        lake: the corpus, open for writing.
        stamp: stamp of the run.
    """

    def __init__(self, lake: Lake, stamp: RunStamp) -> None:
        self._lake = lake
        self._stamp = stamp
        self._written: dict[tuple[str, str], EntryStored] = {}
        """(entry id, embedder) -> the text and chunk that this run stored"""

    def publish(self, base: Snapshot, learned: Learned) -> PublishedEntries:
        """Publish everything that was learned in one commit.

        Args:
            base: the snapshot on which the decisions were made.
            learned: the results of this run.

        Raises:
            PublishConflict: another run has published to one of the namespaces since `base`. Read the newest version,
                compare again and publish with the same writer.
            StorageError: nothing became visible.
        """
        if any(decision.run_id != self._stamp.run_id for decision in learned.decisions):
            raise ValueError(f"decisions of another run than {self._stamp.run_id} would never count")
        rows = self._entry_rows(base, learned)

        def before(sequences: Mapping[str, int]) -> list[Shard]:
            name = f"{self._stamp.run_id}-{time.time_ns():x}.parquet"
            made = self._made(learned, rows, sequences)
            shards = [write_shard(self._lake.layout, "entries", name, made)] if made.num_rows else []
            if learned.decisions:
                shards.append(write_decisions(self._lake.layout, name, learned.decisions, sequences, base.version))
            return shards

        version = self._lake.publish(base, [*rows, *learned.rows], self._stamp.run_id, before)
        return PublishedEntries(version, tuple(rows))

    # --- rows

    def _entry_rows(self, base: Snapshot, learned: Learned) -> list[DocumentRow]:
        """Return the next row of each entry that the decisions change."""
        texts: dict[str, dict[str, EntryText]] = defaultdict(dict)
        for text in learned.texts:
            texts[text.entry.namespace][text.entry.entry_id] = text
        decisions: dict[str, list[Decision]] = defaultdict(list)
        for decision in learned.decisions:
            decisions[decision.namespace].append(decision)
        covered = {row.namespace for row in learned.rows if row.run_id == self._stamp.run_id}
        check_written(base, "documents", base.files["documents"])
        check_written(base, "decisions", base.files["decisions"])
        with connect_snapshot(base) as connection:
            return [
                row
                for namespace in sorted({*texts, *decisions})
                for row in self._rows_of(
                    connection, namespace, texts[namespace], decisions[namespace], restate=namespace not in covered
                )
            ]

    def _rows_of(
        self,
        connection: Connection,
        namespace: str,
        texts: Mapping[str, EntryText],
        decisions: Sequence[Decision],
        *,
        restate: bool,
    ) -> list[DocumentRow]:
        """Return the rows of one namespace.

        Args:
            connection: connection to the base.
            namespace: namespace of the entries.
            texts: texts by entry id.
            decisions: decisions of this namespace.
            restate: return at least one row, without which the decisions would not count.
        """
        earlier = [other for decision in decisions for other in taken_back(connection, decision)]
        changed = set(texts).union(*map(entries_named, (*decisions, *earlier)))
        known = last_rows(connection, namespace, changed)
        # Once an entry comes or goes, the entries that contradict it contradict another one, or none.
        opposed = {entry for row in known.values() for entry in contradicted(row)} - changed
        known |= last_rows(connection, namespace, opposed)
        named = sorted(changed | known.keys())
        stored = self._stored(texts, known)
        # No decision that counts names an entry that was never published.
        history = history_of(connection, namespace, known) if known else []
        states = entry_states([*history, *decisions])
        retired = {entry: each.decision_id for each in decisions for entry in each.retires}
        rows = []
        for entry_id in named:
            before, now = known.get(entry_id), states.get(entry_id, UNKNOWN)
            row = self._row(before, texts.get(entry_id), stored.get(entry_id), now)
            if row is None:
                raise StorageError(f"no text was given for entry {entry_id} of {namespace}; nothing was published")
            if not now.live:
                row = retired_row(row, self._stamp, retired.get(entry_id, "unknown"))
            if before is None or not _same(before, row):
                rows.append(row)
        if restate and decisions and not rows:
            rows = [replace(known[named[0]], run_id=self._stamp.run_id, indexed_at=self._stamp.at)]
        return rows

    def _row(
        self, before: DocumentRow | None, text: EntryText | None, stored: EntryStored | None, state: EntryState
    ) -> DocumentRow | None:
        if before is None:
            return entry_row(text.entry, stored, state, self._stamp) if text and stored else None
        row = live_again(before, state, self._stamp)
        if stored is None:
            return row
        return replace(row, revision=stored.revision, embedder=stored.embedder, tokens=stored.tokens)

    # --- texts, chunks, entries

    def _stored(self, texts: Mapping[str, EntryText], known: Mapping[str, DocumentRow]) -> dict[str, EntryStored]:
        """Return the stored texts of the entries; write those that no run has stored yet."""
        stored = {
            entry_id: stored_of(known[entry_id])
            for entry_id, text in texts.items()
            if entry_id in known and known[entry_id].embedder == text.embedder
        }
        missing = [text for entry_id, text in texts.items() if entry_id not in stored]
        fresh = [text for text in missing if _key(text) not in self._written]
        for embedder in sorted({text.embedder for text in fresh}):
            self._write([text for text in fresh if text.embedder == embedder], embedder)
        return stored | {text.entry.entry_id: self._written[_key(text)] for text in missing}

    def _write(self, texts: Sequence[EntryText], embedder: str) -> None:
        """Write and register the texts and chunks of entries; none of them is visible yet."""
        layout, name = self._lake.layout, entries_shard_name(self._stamp.run_id, len(self._written))
        revisions = [ids.revision(text.entry.entry_id, self._stamp.run_id) for text in texts]
        vectors = np.stack([text.vector for text in texts]).astype(np.float32)
        held = [_text(revision, text) for revision, text in zip(revisions, texts, strict=True)]
        chunks = [_chunk(revision, text) for revision, text in zip(revisions, texts, strict=True)]
        shards = (
            write_texts(layout, name, held, embedder, vectors),
            write_chunks(layout, name, chunks, embedder, vectors),
        )
        self._lake.register(shards, self._stamp.run_id)
        for revision, text in zip(revisions, texts, strict=True):
            self._written[_key(text)] = EntryStored(revision, embedder, text.tokens)

    def _made(self, learned: Learned, rows: Sequence[DocumentRow], sequences: Mapping[str, int]) -> pa.Table:
        """Return the `entries` rows of a publish, for entries that were never published before."""
        by = {(each.namespace, entry): each.decision_id for each in reversed(learned.decisions) for entry in each.adds}
        changed = {(row.namespace, row.document_id): row for row in rows}
        made = [
            {
                "entry_id": entry.entry_id,
                "namespace": entry.namespace,
                "sequence": sequences[entry.namespace],
                "run_id": self._stamp.run_id,
                "revision": row.revision,
                "kind": entry.kind,
                "text": entry.text,
                "visibility": entry.access.visibility,
                "org_id": entry.access.org_id,
                "user_id": entry.access.user_id,
                "confidence": entry.confidence,
                "valid_from": entry.valid_from,
                "created_at": self._stamp.at,
                "decision_id": by.get(key),
            }
            for entry in (text.entry for text in learned.texts)
            if (row := changed.get(key := (entry.namespace, entry.entry_id))) and row.created_at == self._stamp.at
        ]
        return pa.Table.from_pylist(made, schema=schema.ENTRIES)


def entries_named(decision: Decision) -> set[str]:
    """Return the ids of the entries whose rows a decision may change."""
    return {*decision.adds, *decision.retires, *decision.links, *filter(None, [decision.entry_id])}


def last_rows(connection: Connection, namespace: str, entry_ids: Iterable[str]) -> dict[str, DocumentRow]:
    """Return the last row of each given entry, live or not; an entry that was never published is missing.

    Args:
        connection: connection from `connect_snapshot`.
        namespace: namespace of the entries.
        entry_ids: ids of the entries.
    """
    made = schema.DocumentRows()
    found = each_row(
        connection,
        f"""SELECT * FROM document_history
        WHERE namespace = $1 AND {IS_ENTRY} AND document_id IN (SELECT unnest($2::VARCHAR[]))
        QUALIFY row_number() OVER (PARTITION BY document_id ORDER BY sequence DESC) = 1""",
        [namespace, sorted(set(entry_ids))],
    )
    return {values["document_id"]: made.row(values) for values in found}


def _key(text: EntryText) -> tuple[str, str]:
    return (text.entry.entry_id, text.embedder)


def _same(one: DocumentRow, other: DocumentRow) -> bool:
    """True if two rows of an entry differ only in the publish that wrote them and its reason."""
    stamped = {"sequence": other.sequence, "run_id": other.run_id, "indexed_at": other.indexed_at}
    return replace(one, error=other.error, **stamped) == other  # type: ignore[arg-type]


def _text(revision: int, text: EntryText) -> StoredText:
    said = text.entry.text
    part = Part(0, len(said), "document", 1, None, "text")
    return StoredText(revision, said, (part,), ())


def _chunk(revision: int, text: EntryText) -> RevisionChunks:
    said = text.entry.text
    chunk = Chunk(0, 0, len(said), "document", None, ())
    return RevisionChunks(revision, [chunk], [said], [text.tokens], [ids.text_hash(said)])
