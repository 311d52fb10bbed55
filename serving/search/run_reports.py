"""The report of one recorded run: what it did, where its time went, and which documents took longest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parquetry.errors import SettingsError
from parquetry.planning.costs import Cost, from_column
from parquetry.serving.search.run_rows import run_json
from parquetry.storage.database import Connection, rows

NEWEST = "last"
"""name of the newest run"""
_MOST_NAMED = 3
"""run ids in a message"""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run in the table `runs`."""

    row: Mapping[str, Any]
    """columns of `runs`"""
    seconds_by_stage: Mapping[str, float]
    """empty for a run by an earlier version of Parquetry"""
    slowest: Sequence[Mapping[str, Any]]
    """slowest documents first: namespace, source, document_id, uri, stage and seconds; uri is None for a document that
    was erased"""
    failures_by_reason: Mapping[str, int]
    costs: Sequence[Cost]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry history RUN --json` prints."""
        row = self.row
        return {
            **run_json(row),
            "namespaces": row["namespaces"],
            "version_before": row["version_before"],
            "version_after": row["version_after"],
            "chunks": {name: row[f"chunks_{name}"] or 0 for name in ("written", "embedded", "reused")},
            "bytes_read": row["bytes_read"] or 0,
            "failures_by_reason": dict(self.failures_by_reason),
            "seconds_by_stage": dict(self.seconds_by_stage),
            "slowest": [dict(each) for each in self.slowest],
        }


def recorded_run(connection: Connection, name: str) -> RecordedRun:
    """Return the run of a name.

    Args:
        connection: with the views of the corpus.
        name: number of the version that it published, the beginning of its id, or `last`.

    Raises:
        SettingsError: no run, or more than one, has this name.
    """
    row = _row(connection, name)
    slowest = json.loads(row["slowest"] or "[]")
    uris = _uris(connection, [each["document_id"] for each in slowest])
    return RecordedRun(
        row,
        json.loads(row["seconds_by_stage"] or "{}"),
        [{**each, "uri": uris.get((each["namespace"], each["document_id"]))} for each in slowest],
        json.loads(row["failures_by_reason"] or "{}"),
        from_column(row["costs"] or "[]"),
    )


def _row(connection: Connection, name: str) -> dict[str, Any]:
    if name == NEWEST:
        found = rows(connection, "SELECT * FROM runs ORDER BY started_at DESC, run_id DESC LIMIT 1")
    elif name.isascii() and name.isdigit():
        found = rows(
            connection,
            "SELECT * FROM runs WHERE version_after::VARCHAR = $1 AND version_before < version_after",
            [name],
        )
    else:
        limit = _MOST_NAMED + 1
        found = rows(
            connection, f"SELECT * FROM runs WHERE starts_with(run_id, $1) ORDER BY run_id LIMIT {limit}", [name]
        )
    if not found:
        raise SettingsError(
            f"no run {name!r} is recorded; name the version that it published, the beginning of its id (`parquetry "
            f"history -v` lists those that published), or `{NEWEST}`"
        )
    if len(found) > 1:
        known = ", ".join(row["run_id"] for row in found[:_MOST_NAMED])
        raise SettingsError(f"more than one run is named {name!r}: {known}{', ...' * (len(found) > _MOST_NAMED)}")
    return found[0]


def _uris(connection: Connection, document_ids: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return (namespace, document id) -> newest address."""
    statement = """SELECT namespace, document_id, arg_max(uri, sequence) AS uri FROM document_history
        WHERE document_id IN (SELECT unnest($1::VARCHAR[])) GROUP BY ALL"""
    found = rows(connection, statement, [sorted(set(document_ids))])
    return {(row["namespace"], row["document_id"]): row["uri"] for row in found}
