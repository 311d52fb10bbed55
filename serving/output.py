"""What people see: results, reports and tables as text."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from knowledge.report import RunReport, failures_by_reason
from serving.service import SearchResponse, plain
from storage.search import Hit

if TYPE_CHECKING:
    from tasks.plan import RefreshPlan

SHOWN_FAILURES = 20
NARROWEST_COLUMN = 10
"""characters"""
_GAP = "  "
SHOWN_LINES = 4
"""of a chunk that answers"""
WIDEST_LINE = 100
"""characters; longer lines are hard to read on the widest terminal too"""
STEM_CHARACTERS = 5
"""of a word that make it the same word in another inflection, well enough to choose what to show"""


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def terminal_width() -> int:
    """Characters in a line; what is not a terminal gets lines as for one of 80."""
    return shutil.get_terminal_size().columns


def place(row: Mapping[str, Any]) -> str:
    """Where a chunk stands, for a citation: `leave.pdf, page 3`."""
    headings = list(row["headings"] or ())
    parts = [str(row["filename"])]
    if row["page"] is not None and row["kind"] != "document":
        parts.append(f"{row['kind']} {row['page']}")
    if headings:
        parts.append(" > ".join(headings[-2:]))
    return ", ".join(parts)


def print_hits(response: SearchResponse, *, whole: bool = False) -> None:
    """Ranked chunks with their citations, in lines that fit the terminal.

    Args:
        response: of the search.
        whole: print all of each chunk; otherwise the lines of it that are closest to the query.
    """
    if not response.hits:
        typer.echo("Nothing in this corpus matches.")
    width = min(terminal_width(), WIDEST_LINE)
    for number, hit in enumerate(response.hits, 1):
        typer.echo(textwrap.fill(f"[{number}] {_heading(hit)}", width, subsequent_indent="    "))
        text = hit.row["text"]
        for line in _whole(text, width - 4) if whole else _excerpt(text, response.request.query, width - 4):
            typer.echo(f"    {line}".rstrip())
        # Unbroken, because terminals and scripts take a uri as a whole.
        typer.echo(f"    {hit.row['uri']} [{hit.row['start']}:{hit.row['end']}]")
    typer.echo(f"{len(response.hits)} results in {response.seconds:.2f} s from version {response.version}.")


def _heading(hit: Hit) -> str:
    title = hit.row["title"]
    shown = f"{title} ({place(hit.row)})" if title else place(hit.row)
    return f"{shown}  {hit.score:.3f}"


def _whole(text: str, width: int) -> list[str]:
    """All lines of a chunk, the long ones wrapped."""
    return [part for line in text.splitlines() for part in textwrap.wrap(line, width) or [""]]


def _excerpt(text: str, query: str, width: int) -> list[str]:
    """The lines of a chunk, a few in a row, that hold most of the query's words in whatever inflection."""
    lines = textwrap.wrap(" ".join(text.split()), width)
    stems = {word[:STEM_CHARACTERS] for word in re.findall(r"\w+", query.casefold()) if len(word) > 3}
    found = [{stem for stem in stems if stem in line.casefold()} for line in lines]
    last = max(0, len(lines) - SHOWN_LINES)
    start = max(range(last + 1), key=lambda line: (len(set().union(*found[line : line + SHOWN_LINES])), -line))
    shown = lines[start : start + SHOWN_LINES]
    before, after = ["..."] * (start > 0), ["..."] * (start < last)
    return [*before, *shown, *after]


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
        typer.echo(f"Source {source.source}: {len(source.changes)} documents, {len(changes)} to do.")
        shown = changes if verbose else changes[:SHOWN_FAILURES]
        for change in shown:
            path = change.item.path if change.item else change.known.path if change.known else change.document_id
            typer.echo(f"  {change.action} {path} ({change.reason})")
        if len(shown) < len(changes):
            typer.echo(f"  ... and {len(changes) - len(shown)} more; -v shows all")
        if source.refused:
            typer.echo(f"  Refused: {source.refused}.")
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
