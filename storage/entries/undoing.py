"""Undo decisions about entries: one publish, retried when other runs publish first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from parquetry.errors import PublishConflict, SettingsError
from parquetry.model import DocumentRow
from parquetry.planning.rows import RunStamp
from parquetry.sessions.ledger.undo import Undoing, undo
from parquetry.sessions.model import Decision
from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.entries.entries import EntryWriter, Learned, entries_named
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.ledger import decision_of, history_of, taken_back
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.lake.rewrite import record_publish, run_row
from parquetry.storage.lake.snapshot_views import connect_snapshot


@dataclass(frozen=True, slots=True)
class Undone:
    """A decision that was undone."""

    run_id: str
    version_before: int
    version: int
    target: Decision
    undoing: Undoing
    texts: dict[str, str]
    """text of every entry that one of the decisions names, by entry id"""


def undo_decision(lake: Lake, decision_id: str, stamp: RunStamp) -> Undone:
    """Publish a version in which a decision does not count.

    Args:
        lake: the corpus.
        decision_id: id as listed by `parquetry decisions`; a prefix is enough if it is unique.
        stamp: stamp of this run.

    Raises:
        SettingsError: there is no such decision, it is undone already, or it made no entry; nothing was published.
        StorageError: the publish failed; nothing was published.
    """
    started = perf_counter()
    writer = EntryWriter(lake, stamp)

    def publish(_: PublishConflict | None) -> tuple[Undone, Sequence[DocumentRow]]:
        snapshot = lake.snapshot()
        with connect_snapshot(snapshot) as connection:
            target = find_decision(connection, decision_id)
            named = set[str]().union(*map(entries_named, (target, *taken_back(connection, target))))
            history = history_of(connection, target.namespace, named, later=True)
            undoing = undo(target, history, stamp)
            texts = _texts(connection, target.namespace, (target, undoing.decision, *undoing.affected))
        published = writer.publish(snapshot, Learned([undoing.decision]))
        return Undone(stamp.run_id, snapshot.version, published.version, target, undoing, texts), published.rows

    undone, rows = publish_with_retry(publish, "nothing was changed, try again")
    seconds = perf_counter() - started
    record_publish(lake, run_row("undo", undone.version_before, undone.version, rows, stamp, seconds))
    return undone


def find_decision(connection: Connection, decision_id: str) -> Decision:
    """Return a published decision by its id or a prefix of the id.

    Raises:
        SettingsError: no decision has this prefix, or several have.
    """
    found = rows(
        connection,
        "SELECT * FROM decisions WHERE starts_with(decision_id, $1) ORDER BY decision_id LIMIT 3",
        [decision_id],
    )
    if not found or not decision_id:
        raise SettingsError(f"no decision {decision_id!r} in this corpus; `parquetry decisions` lists them")
    if len(found) > 1 and found[0]["decision_id"] != decision_id:
        names = ", ".join(row["decision_id"] for row in found[:2])
        raise SettingsError(f"{decision_id!r} is the beginning of several decisions ({names}, ...); give more of it")
    return decision_of(found[0])


def _texts(connection: Connection, namespace: str, decisions: tuple[Decision, ...]) -> dict[str, str]:
    named = set[str]().union(*map(entries_named, decisions))
    return dict(
        tuples(
            connection,
            """SELECT entry_id, any_value(text) FROM all_entries
            WHERE namespace = $1 AND entry_id IN (SELECT unnest($2::VARCHAR[])) GROUP BY entry_id""",
            [namespace, sorted(named)],
        )
    )
