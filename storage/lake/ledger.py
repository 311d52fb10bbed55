"""The ledger of decisions about entries: written with a publish, read back in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from parquetry.model import Access
from parquetry.sessions.model import Decision, Spent
from parquetry.storage.database import Connection, rows
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake import schema
from parquetry.storage.lake.shards import Shard, write_shard

_PLAIN = (
    "decision_id",
    "namespace",
    "run_id",
    "at",
    "kind",
    "judge",
    "session_id",
    "session_uri",
    "said_at",
    "text",
    "entry_kind",
    "confidence",
    "entry_id",
    "reasoning",
    "reason",
    "undoes",
)
"""columns with a field of the same name"""
_LISTS = ("evidence", "adds", "retires", "links")
_SPENT = ("model", "prompt", "input_tokens", "output_tokens", "cost_usd")


def write_decisions(
    layout: Layout, name: str, decisions: Sequence[Decision], sequences: Mapping[str, int], base: int
) -> Shard:
    """Write the `decisions` rows of a publish.

    Args:
        layout: layout of the corpus.
        name: name of the file.
        decisions: in the order in which they were made.
        sequences: namespace -> number of the publish.
        base: version of `documents` on which the publish was decided.
    """
    columns: dict[str, list[Any]] = {name: [getattr(each, name) for each in decisions] for name in _PLAIN}
    columns |= {name: [list(getattr(each, name)) for each in decisions] for name in _LISTS}
    columns |= {name: [getattr(each.spent, name) for each in decisions] for name in _SPENT}
    for field in ("visibility", "org_id", "user_id"):
        columns[field] = [each.access and getattr(each.access, field) for each in decisions]
    columns["session_user"] = [each.user_id for each in decisions]
    columns["candidates"] = [json.dumps([list(pair) for pair in each.candidates]) for each in decisions]
    columns["sequence"] = [sequences[each.namespace] for each in decisions]
    columns["base"] = [base] * len(decisions)
    columns["number"] = list(range(len(decisions)))
    return write_shard(layout, "decisions", name, pa.table(columns, schema=schema.DECISIONS))


def decision_of(row: Mapping[str, Any]) -> Decision:
    """Return the decision in a row of the view `decisions`."""
    visibility = row["visibility"]
    values: dict[str, Any] = {name: row[name] for name in _PLAIN} | {name: tuple(row[name] or ()) for name in _LISTS}
    return Decision(
        **values,
        user_id=row["session_user"],
        access=None if visibility is None else Access(visibility, row["org_id"], row["user_id"]),
        candidates=tuple((entry, score) for entry, score in json.loads(row["candidates"] or "[]")),
        spent=Spent(**{name: row[name] for name in _SPENT}),
    )


def history_of(
    connection: Connection, namespace: str, entry_ids: Iterable[str], *, later: bool = False
) -> list[Decision]:
    """Return the decisions that affect the given entries, oldest first.

    Args:
        connection: connection from `connect_snapshot`.
        namespace: namespace of the entries.
        entry_ids: ids of the entries.
        later: True to include decisions about entries that others were merged into.

    Returns:
        All decisions that name one of the entries or an entry merged into one of them, and all that undo one of these.
    """
    entries, known = set(entry_ids), set[str]()
    found: list[dict[str, Any]] = []
    while True:
        found = rows(connection, _NAMING, [namespace, sorted(entries), sorted(known)])
        wider = entries.union(*(row["retires"] for row in found if row["kind"] == "merged"))
        if later:
            wider.update(*(row["adds"] for row in found if row["kind"] == "merged"))
        named = {row["decision_id"] for row in found}
        if wider == entries and named == known:
            return [decision_of(row) for row in found]
        entries, known = wider, named


def taken_back(connection: Connection, decision: Decision) -> list[Decision]:
    """Return the decision that the given one undoes, the one which that undoes in turn, and so on; empty if none."""
    found: list[Decision] = []
    undoes = decision.undoes
    while undoes is not None:
        (row,) = rows(connection, "SELECT * FROM decisions WHERE decision_id = $1", [undoes])
        found.append(decision_of(row))
        undoes = row["undoes"]
    return found


_NAMING = """WITH named AS (
    SELECT decision_id, unnest(list_concat([entry_id], adds, retires, links)) AS entry_id
    FROM decisions WHERE namespace = $1
)
SELECT * FROM decisions WHERE namespace = $1 AND (
    decision_id IN (SELECT decision_id FROM named WHERE entry_id IN (SELECT unnest($2::VARCHAR[])))
    OR undoes IN (SELECT unnest($3::VARCHAR[])) OR decision_id IN (SELECT unnest($3::VARCHAR[]))
) ORDER BY sequence, number"""
