"""The command `costs`: what the runs of each month cost, by source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Annotated, Any

import typer

from parquetry.planning.costs import total_usd
from parquetry.planning.monthly_costs import MonthlyCosts, costs_of_run, monthly_costs, rounded
from parquetry.planning.report import dollars
from parquetry.printing import tell
from parquetry.serving.cli.options import MOST_ROWS, ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json, print_table
from parquetry.storage.database import rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_readable

_COLUMNS = "run_id, kind, status, started_at, namespaces, sources, tokens, cost_usd, costs, estimated_usd"


def costs(
    months: Annotated[int, typer.Option(min=1, max=MOST_ROWS, help="Number of months to show, newest first.")] = 12,
    by_run: Annotated[bool, typer.Option("--runs", help="List the runs, with what their plans expected.")] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the runs of each month cost, by source.

    Embeddings, image descriptions and learning from sessions; not what searches and chats cost.
    """
    settings = settings_for(config, corpus)
    snapshot = Lake(settings.corpus.root).snapshot()
    with connect_readable(snapshot) as connection:
        found = rows(connection, f"SELECT {_COLUMNS} FROM runs ORDER BY started_at DESC, run_id DESC")
    shown = monthly_costs(found)[:months]
    kept = {month.month for month in shown}
    runs = [run for run in found if f"{run['started_at'].astimezone(UTC):%Y-%m}" in kept and costs_of_run(run)]
    if as_json:
        listed = {"runs": [_run_json(run) for run in runs]} if by_run else {}
        print_json({"version": snapshot.version, "months": [month.as_json() for month in shown], **listed})
    elif not runs:
        tell("No run used a model.")
    elif by_run:
        _print_runs(runs)
    else:
        _print_months([month for month in shown if month.runs])


def _print_months(months: Sequence[MonthlyCosts]) -> None:
    table: list[Sequence[Any]] = []
    for month in months:
        table.append((month.month, "total", "", month.tokens, dollars(month.cost_usd), dollars(month.estimated_usd)))
        for cost in month.costs:
            owner = (cost.namespace or "", cost.source or "(of no source alone)")
            table.append(("", "/".join(filter(None, owner)), cost.purpose, cost.tokens, dollars(cost.cost_usd), None))
    print_table(("month", "source", "for", "tokens", "cost", "expected"), table)


def _print_runs(runs: Sequence[dict[str, Any]]) -> None:
    columns = ("at (UTC)", "kind", "status", "sources", "tokens", "cost", "expected", "run_id")
    table = []
    for run in runs:
        paid = costs_of_run(run)
        table.append(
            (
                f"{run['started_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S}",
                run["kind"],
                run["status"],
                ", ".join(run["sources"] or ()),
                sum(cost.tokens for cost in paid),
                dollars(total_usd(paid)),
                dollars(run["estimated_usd"]),
                run["run_id"],
            )
        )
    print_table(columns, table)


def _run_json(run: dict[str, Any]) -> dict[str, Any]:
    paid = costs_of_run(run)
    return {
        "run_id": run["run_id"],
        "kind": run["kind"],
        "status": run["status"],
        "at": run["started_at"].astimezone(UTC).isoformat(),
        "sources": run["sources"],
        "tokens": sum(cost.tokens for cost in paid),
        "cost_usd": rounded(total_usd(paid)),
        "estimated_usd": rounded(run["estimated_usd"]),
    }
