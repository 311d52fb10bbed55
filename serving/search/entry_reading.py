"""Knowledge entries and their history, limited to what a caller may see. Knows nothing of terminals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parquetry.sessions.model import DecisionKind, EntryKind
from parquetry.storage.database import Connection, rows

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EntryStory:
    """History of an entry."""

    decisions: tuple[Row, ...]
    """decisions that name the entry or one merged into it, oldest first; without those of other users' sessions"""
    others: int
    """number of other users' sessions that support it"""


def live_entries(
    connection: Connection,
    namespace: str | None = None,
    kind: EntryKind | None = None,
    contains: str | None = None,
) -> list[dict[str, Any]]:
    """Return the live entries, most recently stated first.

    Args:
        connection: connection on a snapshot, limited to what the caller may see.
        namespace: only rows of this namespace.
        kind: only rows of this kind.
        contains: only entries with this text, case-insensitive.
    """
    return rows(
        connection,
        """SELECT * FROM entries WHERE ($1 IS NULL OR namespace = $1) AND ($2 IS NULL OR kind = $2)
            AND ($3 IS NULL OR contains(lower(text), lower($3))) ORDER BY last_said DESC, entry_id""",
        [namespace, kind, contains],
    )


def decisions(
    connection: Connection,
    namespace: str | None = None,
    run: str | None = None,
    session: str | None = None,
    kind: DecisionKind | None = None,
    entry: str | None = None,
    limit: int | None = None,
) -> list[dict[str, Any]]:
    """Return the decisions, newest first.

    Args:
        connection: connection on a snapshot, limited to what the caller may see.
        namespace: only rows of this namespace.
        run: only decisions of this run.
        session: only decisions about this session: its id, its uri, or part of the uri.
        kind: only rows of this kind.
        entry: only decisions that name the entry with this id or id prefix.
        limit: maximum number of decisions; None for all.
    """
    return rows(
        connection,
        """SELECT * FROM decisions WHERE ($1 IS NULL OR namespace = $1) AND ($2 IS NULL OR run_id = $2)
            AND ($3 IS NULL OR session_id = $3 OR contains(session_uri, $3)) AND ($4 IS NULL OR kind = $4)
            AND ($5 IS NULL OR len(list_filter(list_concat([entry_id], adds, retires, links),
                lambda each: starts_with(coalesce(each, ''), $5))) > 0)
        ORDER BY "at" DESC, sequence DESC, number DESC"""
        + (f" LIMIT {limit:d}" if limit is not None else ""),
        [namespace, run, session, kind, entry],
    )


def stories(connection: Connection, entries: Sequence[Row]) -> dict[tuple[str, str], EntryStory]:
    """Read the history of entries.

    Args:
        connection: as in `live_entries`.
        entries: rows from `live_entries`.

    Returns:
        Stories by namespace and id.
    """
    naming: dict[tuple[str, str], list[Row]] = defaultdict(list)
    undoing: dict[str, list[Row]] = defaultdict(list)
    for decision in rows(connection, "SELECT * FROM decisions ORDER BY sequence, number"):
        for entry in {decision["entry_id"], *decision["adds"], *decision["retires"], *decision["links"]} - {None}:
            naming[decision["namespace"], entry].append(decision)
        if decision["undoes"] is not None:
            undoing[decision["undoes"]].append(decision)
    return {(entry["namespace"], entry["entry_id"]): _story(entry, naming, undoing) for entry in entries}


def _story(
    entry: Row, naming: Mapping[tuple[str, str], Sequence[Row]], undoing: Mapping[str, Sequence[Row]]
) -> EntryStory:
    found: dict[str, Row] = {}
    entries, seen = [entry["entry_id"]], set[str]()
    while entries:
        each = entries.pop()
        if each in seen:
            continue
        seen.add(each)
        for decision in naming.get((entry["namespace"], each), ()):
            found[decision["decision_id"]] = decision
            if decision["kind"] == "merged" and each in (decision["entry_id"], *decision["adds"]):
                entries.extend(decision["retires"])
    undone = list(found)
    while undone:
        for decision in undoing.get(undone.pop(), ()):
            if decision["decision_id"] not in found:
                found[decision["decision_id"]] = decision
                undone.append(decision["decision_id"])
    shown = [each for each in found.values() if each["session_id"] or each["judge"] == "operator"]
    shown.sort(key=lambda each: (each["sequence"], each["number"]))
    supporting = {
        each["session_id"]
        for each in shown
        if each["session_id"] and each["undone_by"] is None and each["entry_id"] in seen
    }
    return EntryStory(tuple(shown), max(0, entry["sessions"] - len(supporting)))


def live_texts(connection: Connection, entry_ids: Collection[str]) -> dict[str, str]:
    """Return the texts, by id, of entries that are live and visible to the caller."""
    chosen = "SELECT entry_id, text FROM entries WHERE entry_id IN (SELECT unnest($1::VARCHAR[]))"
    return {row["entry_id"]: row["text"] for row in rows(connection, chosen, [sorted(entry_ids)])}


def texts_of(connection: Connection, decisions: Sequence[Row]) -> dict[str, str]:
    """Return the texts, by id, of the entries named in decisions and visible to the caller, live or not."""
    named = {
        entry for each in decisions for entry in (each["entry_id"], *each["adds"], *each["retires"], *each["links"])
    }
    found = rows(
        connection,
        """SELECT DISTINCT entry_id, text FROM entry_history WHERE entry_id IN (SELECT unnest($1::VARCHAR[]))""",
        [sorted(named - {None})],
    )
    return {row["entry_id"]: row["text"] for row in found}
