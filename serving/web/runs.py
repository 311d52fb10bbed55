"""The runs of a corpus: their history, one of them, what is not searchable, and the sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from parquetry.masking import masked
from parquetry.planning.costs import Cost, total_usd
from parquetry.planning.monthly_costs import costs_of_run
from parquetry.serving.search.run_reports import recorded_run
from parquetry.serving.search.run_rows import counts_of
from parquetry.serving.web.bars import WIDTH, Bar, stage_bars
from parquetry.serving.web.jobs import NAMES, FailedDocument, FailedGroup, group
from parquetry.settings.sections import Settings
from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT

RUNS_SHOWN = 25
"""runs on one page"""
DOCUMENTS_SHOWN = 25
"""documents of one reason that a run names"""
MOST_RETRIED = 10_000
"""documents that are tried again at once"""
_COLUMNS = (
    "run_id, kind, status, started_at, seconds, namespaces, sources, version_before, version_after, scanned, added, "
    "changed, moved, permissions, unchanged, removed, failed, skipped, tokens, cost_usd, error"
)


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the history."""

    id: str
    name: str
    status: str
    started_at: datetime
    seconds: float
    sources: str
    outcome: str
    """counts in words; the first line of the error of a run that published nothing"""
    cost_usd: float | None
    version: int | None
    """version that it published; None if it published none"""
    failed: int


@dataclass(frozen=True, slots=True)
class SlowestDocument:
    """A document that took long."""

    id: str
    name: str
    stage: str
    seconds: float
    length: float
    """of its bar"""


@dataclass(frozen=True, slots=True)
class RunPage:
    """One run."""

    run: ListedRun
    row: Mapping[str, Any]
    bars: Sequence[Bar]
    slowest: Sequence[SlowestDocument]
    failures: Sequence[FailedGroup]
    costs: Sequence[Cost]
    paid_usd: float | None
    """None if a price is unknown"""
    estimated_usd: float | None
    counts: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source of the settings, with its last run."""

    name: str
    namespace: str
    place: str
    content: str
    schedule: str
    last: ListedRun | None


def listed_runs(connection: Connection, number: int, kind: str | None = None) -> tuple[list[ListedRun], int]:
    """Return a page of the runs, the newest first, and the number of all.

    Args:
        connection: connection of `run_views`.
        number: number of the page, 1-based.
        kind: only runs of this kind.
    """
    where, values = ("kind = $1", [kind]) if kind else ("true", [])
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM runs WHERE {where} ORDER BY started_at DESC, run_id DESC "
        f"LIMIT {RUNS_SHOWN} OFFSET {(number - 1) * RUNS_SHOWN:d}",
        values,
    )
    ((total,),) = tuples(connection, f"SELECT count(*) FROM runs WHERE {where}", values)
    return [_listed(row) for row in found], int(total)


def kinds_of_runs(connection: Connection) -> list[tuple[str, str]]:
    """Return the kinds of runs that there were, with their names."""
    found = tuples(connection, "SELECT DISTINCT kind FROM runs ORDER BY kind")
    return [(str(kind), name_of(str(kind))) for (kind,) in found]


def name_of(kind: str) -> str:
    """Return the name of a kind of run."""
    return NAMES.get(kind, kind.capitalize())


_CANCELLED = "Cancelled: "
"""beginning of the error of a run that was cancelled, as it is recorded"""


def _listed(row: Mapping[str, Any]) -> ListedRun:
    published = row["version_after"] is not None and row["version_after"] != row["version_before"]
    error = (row["error"] or "").partition("\n")[0]
    outcome = counts_of(row) or ("Nothing to do" if row["status"] == "completed" else "")
    return ListedRun(
        id=row["run_id"],
        name=name_of(row["kind"]),
        status="cancelled" if error.startswith(_CANCELLED) else row["status"],
        started_at=row["started_at"],
        seconds=row["seconds"] or 0.0,
        sources=", ".join(row["sources"] or ()),
        outcome=outcome if row["status"] == "completed" else error.removeprefix(_CANCELLED) or outcome,
        cost_usd=row["cost_usd"],
        version=row["version_after"] if published else None,
        failed=row["failed"] or 0,
    )


def run_page(connection: Connection, run_id: str) -> RunPage:
    """Return one run.

    Args:
        connection: connection of `run_views`.
        run_id: its id.

    Raises:
        SettingsError: there is no such run.
    """
    found = recorded_run(connection, run_id)
    row, costs = found.row, costs_of_run(found.row)
    longest = max((each["seconds"] for each in found.slowest), default=0.0)
    slowest = [
        SlowestDocument(
            each["document_id"],
            name_in(each["uri"] or "an erased document"),
            each["stage"],
            each["seconds"],
            round(WIDTH * each["seconds"] / longest, 1) if longest else 0.0,
        )
        for each in found.slowest
    ]
    names = [("scanned", "scanned"), *((name, name) for name in _COUNTED), *_CHUNKS]
    return RunPage(
        run=_listed(row),
        row=row,
        bars=stage_bars(found.seconds_by_stage),
        slowest=slowest,
        failures=_failures(connection, row["run_id"]),
        costs=costs,
        paid_usd=total_usd(costs),
        estimated_usd=row["estimated_usd"],
        counts=[(label, row[column]) for label, column in names if row[column]],
    )


_CHUNKS = (("chunks", "chunks_written"), ("embedded", "chunks_embedded"), ("reused", "chunks_reused"))
_COUNTED = ("added", "changed", "moved", "permissions", "unchanged", "removed", "failed", "skipped")


def name_in(uri: str) -> str:
    """Return the last part of an address, as people write it."""
    return unquote(uri.rstrip("/").rpartition("/")[2])


def _failures(connection: Connection, run_id: str) -> list[FailedGroup]:
    """Return the failures of a run by reason, the most frequent first, with the first documents of each."""
    found = rows(
        connection,
        f"""SELECT *, count(*) OVER (PARTITION BY stage, reason) AS n FROM failures WHERE run_id = $1
        QUALIFY row_number() OVER (PARTITION BY stage, reason ORDER BY uri) <= {DOCUMENTS_SHOWN}
        ORDER BY n DESC, stage, reason, uri""",
        [run_id],
    )
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in found:
        groups.setdefault((row["stage"], row["reason"]), []).append(row)
    return [
        group(stage, reason, members[0]["n"], tuple(map(_failed, members)))
        for (stage, reason), members in groups.items()
    ]


def _failed(row: Mapping[str, Any]) -> FailedDocument:
    return FailedDocument(
        row["document_id"] or "", name_in(row["uri"] or row["source"]), row["detail"] or "", row["attempts"] or 0
    )


def not_searchable(connection: Connection) -> list[FailedGroup]:
    """Return the documents that are not searchable now, by reason, the most frequent first."""
    found = tuples(
        connection,
        f"""SELECT split_part(error, ': ', 1) AS told, status, count(*) AS n FROM published
        WHERE {IS_DOCUMENT} AND status <> 'indexed' GROUP BY told, status ORDER BY n DESC, told, status""",
    )
    groups = []
    for told, status, number in found:
        stage, _, reason = str(told).rpartition("/")
        groups.append(group(stage, reason, int(number), status=str(status)))
    return groups


def to_retry(connection: Connection, stage: str, reason: str, run_id: str | None) -> list[str]:
    """Return the ids of the documents that failed for a reason and still do.

    Args:
        connection: connection of `run_views`.
        stage: stage of the failure.
        reason: code of the reason.
        run_id: only those that failed in this run; None for all.
    """
    of_run = "" if run_id is None else "AND document_id IN (SELECT document_id FROM failures WHERE run_id = $2)"
    told = f"{stage}/{reason}" if stage else reason
    found = tuples(
        connection,
        f"""SELECT document_id FROM published WHERE {IS_DOCUMENT} AND status <> 'indexed'
        AND split_part(error, ': ', 1) = $1 {of_run} ORDER BY document_id LIMIT {MOST_RETRIED}""",
        [told] if run_id is None else [told, run_id],
    )
    return [str(document) for (document,) in found]


def sources_of(settings: Settings, connection: Connection | None) -> list[ListedSource]:
    """Return the sources of the settings, each with its last run.

    Args:
        settings: settings of the corpus.
        connection: connection of `run_views`; None if there is no corpus yet.
    """
    last = {} if connection is None else _last_runs(connection)
    return [
        ListedSource(
            each.name,
            each.namespace or settings.corpus.namespace,
            masked(each.uri),
            each.content,
            each.schedule or "",
            last.get((each.namespace or settings.corpus.namespace, each.name)),
        )
        for each in settings.source
    ]


def _last_runs(connection: Connection) -> dict[tuple[str, str], ListedRun]:
    found = rows(
        connection,
        f"""SELECT {_COLUMNS}, namespace, source FROM (
            SELECT *, unnest(namespaces) AS namespace FROM (SELECT *, unnest(sources) AS source FROM runs)
        ) QUALIFY row_number() OVER (PARTITION BY namespace, source ORDER BY started_at DESC, run_id DESC) = 1""",
    )
    return {(row["namespace"], row["source"]): _listed(row) for row in found}
