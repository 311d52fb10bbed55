"""The command `history`: list the versions of a corpus and the runs that published them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquetry.serving.cli.options import MOST_ROWS, ConfigOption, CorpusOption, JsonOption, VerboseOption, settings_for
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.search.run_rows import counts_of, run_json
from parquetry.serving.search.service import Reader
from parquetry.storage.lake.history import Publish

if TYPE_CHECKING:
    from parquetry.settings.sections import Settings
    from parquetry.storage.lake.retention import Retained


def history(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Show the report of one run: the version that it published, the beginning of its id, or `last`.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=MOST_ROWS, help="Number of versions to show, newest first.")
    ] = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """List the versions of the corpus, newest first.

    Each with the kind of its run and its counts, and its tags. -v adds run ids. With RUN, show one run: its outcome,
    where its time went, and its slowest documents.
    """
    from parquetry.storage.lake.retention import read_retention

    if run is not None:
        _show_run(run, settings_for(config, corpus), as_json=as_json)
        return
    with Reader(settings_for(config, corpus)) as reader:
        found = reader.history(limit)
        runs = reader.runs([each.run_id for each in found if each.run_id])
        kept = read_retention(reader.snapshot.layout)
    if as_json:
        print_json({"versions": [_as_json(each, runs.get(each.run_id or ""), kept) for each in found]})
        return
    columns = ["version", "at (UTC)", "kind", "rows", "outcome", "seconds", "cost"]
    rows = [_row(each, runs.get(each.run_id or "")) for each in found]
    if kept.tags or kept.horizon:
        columns.append("kept")
        rows = [(*row, _standing(kept, each.version)) for row, each in zip(rows, found, strict=True)]
    if verbose:
        columns.append("run_id")
        rows = [(*row, each.run_id) for row, each in zip(rows, found, strict=True)]
    print_table(columns, rows)


def _show_run(name: str, settings: Settings, *, as_json: bool) -> None:
    from parquetry.serving.cli.run_report import print_run
    from parquetry.serving.search.run_reports import recorded_run

    with Reader(settings) as reader:
        found = recorded_run(reader.tables, name)
    if as_json:
        print_json(found.as_json())
    else:
        print_run(found)


def _standing(kept: Retained, version: int) -> str:
    """Return the tags of a version, or whether it is kept without one."""
    return ", ".join(kept.names_of(version)) or ("yes" if kept.keeps(version) else "no")


def _as_json(publish: Publish, run: Mapping[str, Any] | None, kept: Retained) -> dict[str, Any]:
    told = {
        "version": publish.version,
        "at": publish.at.isoformat(),
        "operation": publish.operation,
        "run_id": publish.run_id,
        "rows": publish.documents,
        "kept": kept.keeps(publish.version),
        "tags": kept.names_of(publish.version),
    }
    made = run_json(run) if run is not None else {}
    names = ("kind", "status", "seconds", "sources", "counts", "tokens", "cost_usd")
    return {**told, **{name: made.get(name) for name in names}}


def _row(publish: Publish, run: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return the row of a version; a run killed after publishing is not recorded."""
    at = f"{publish.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if run is None:
        kind = "unrecorded" if publish.run_id else publish.operation
        return publish.version, at, kind, publish.documents, "", None, None
    cost = f"${run['cost_usd']:.4f}" if run["cost_usd"] else None
    return publish.version, at, run["kind"], publish.documents, counts_of(run), f"{run['seconds']:.1f}", cost
