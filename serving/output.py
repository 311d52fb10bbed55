"""What people see: reports and tables as text; and JSON for programs."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from knowledge.report import RunReport, failures_by_reason

if TYPE_CHECKING:
    from tasks.plan import RefreshPlan

SHOWN_FAILURES = 20
NARROWEST_COLUMN = 10
"""characters"""
_GAP = "  "


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def print_json_line(value: Any) -> None:
    """One JSON object on a line of its own, for a reader of many."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False))


def plain(value: Any) -> Any:
    """A value of a row as JSON can hold it."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no number for it.
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def terminal_width() -> int:
    """Characters in a line; what is not a terminal gets lines as for one of 80."""
    return shutil.get_terminal_size().columns


def print_report(report: RunReport, root: str) -> None:
    """What a refresh did."""
    counts = report.documents
    seen = f"{counts.scanned} documents in {report.seconds:.1f} s"
    parts = [f"{value} {name}" for name, value in counts.as_dict().items() if value and name != "scanned"]
    typer.echo(f"{seen}: {', '.join(parts) or 'nothing to do'}.")
    work = report.work
    if work.chunks_written:
        cost = f", ${work.cost_usd:.4f}" if work.cost_usd else ""
        typer.echo(
            f"{work.chunks_written} chunks: {work.chunks_embedded} embedded ({work.tokens} tokens{cost}), "
            f"{work.chunks_reused} with vectors that were known."
        )
    changed = "published" if report.version != report.version_before else "unchanged at"
    typer.echo(f"Corpus {root}: {changed} version {report.version}.")
    print_failures(report)
    for line in report.empty:
        typer.echo(f"Warning: {line}.")
    for refusal in report.refused:
        typer.echo(f"Refused: {refusal}.")


def print_failures(report: RunReport) -> None:
    """Documents that are not indexed, and why; the most frequent reasons first when there are many."""
    if len(report.failures) > SHOWN_FAILURES:
        for reason, count in failures_by_reason(report.failures).items():
            typer.echo(f"  {count} x {reason}")
        typer.echo("  every one of them: parquetry documents --status failed, --status skipped")
        return
    for failure in report.failures:
        typer.echo(f"  {failure.status} {failure.uri}: {failure.stage}/{failure.reason}: {failure.detail}")


def print_plan(plan: RefreshPlan, *, verbose: bool) -> None:
    """What a refresh would do."""
    for source in plan.sources:
        changes = [change for change in source.changes if change.effort != "nothing"]
        typer.echo(f"Source {source.source}: {source.listed} documents, {len(changes)} to do.")
        shown = changes if verbose else changes[:SHOWN_FAILURES]
        for change in shown:
            path = change.item.path if change.item else change.known.path if change.known else change.document_id
            typer.echo(f"  {change.action} {path} ({change.reason})")
        if len(shown) < len(changes):
            typer.echo(f"  ... and {len(changes) - len(shown)} more; -v shows all")
        for warning in source.warnings:
            typer.echo(f"  note {warning}")
        if source.refused:
            typer.echo(f"  Refused: {source.refused}.")
    for line in plan.empty:
        typer.echo(f"Warning: {line}.")
    estimate = plan.estimate
    if not estimate.chunks:
        typer.echo("Nothing to embed.")
        return
    typer.echo(
        f"At most about {estimate.chunks} chunks, {estimate.tokens} tokens, ${estimate.cost_usd:.4f} "
        f"(${estimate.cost_usd_batch:.4f} in batch mode)."
    )


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], width: int = 60) -> None:
    """An aligned table of plain text."""
    cells = [[_cell(value, width) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    if sys.stdout.isatty():
        widths = _fitted(widths, terminal_width())
    for row in [list(columns), ["-" * size for size in widths], *cells]:
        shown = (_cut(value, size).ljust(size) for value, size in zip(row, widths, strict=True))
        typer.echo(_GAP.join(shown).rstrip())


def _fitted(widths: Sequence[int], limit: int) -> list[int]:
    """Widths that fit a line together, taken from the widest columns; as near to it as can still be read."""
    fitted = list(widths)
    while sum(fitted) + len(_GAP) * (len(fitted) - 1) > limit and max(fitted, default=0) > NARROWEST_COLUMN:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def _cell(value: Any, width: int) -> str:
    text = "" if value is None else " ".join(str(plain(value)).split())
    return _cut(text, width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
