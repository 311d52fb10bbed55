"""Terminal output: reports and tables as text, and JSON for programs."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from parquetry.planning.kept import KeptDocuments
from parquetry.planning.report import RunReport, dollars, failures_by_reason, published_line
from parquetry.plural import counted
from parquetry.printing import tell, tell_json, tell_text, visible

if TYPE_CHECKING:
    from parquetry.tasks.documents.plan import RefreshPlan
    from parquetry.tasks.documents.space import DiskSpace

SHOWN_FAILURES = 20
NARROWEST_COLUMN = 10
"""characters"""
_GAP = "  "
_BLANKS = re.compile(r"[ \t\r\n]+")
_NAMES = frozenset({"filename", "namespace", "path", "source", "uri"})
"""columns where white space is significant"""


def print_json(value: Any) -> None:
    """Print one JSON object on stdout."""
    tell_json(plain(value), 2 if sys.stdout.isatty() else None)


def print_json_line(value: Any) -> None:
    """Print one JSON object on a single line, for JSON-lines output."""
    tell_json(plain(value))


def confirmed(question: str, *, default: bool = False, err: bool = False) -> bool:
    """Ask the user at the terminal to confirm."""
    return bool(typer.confirm(visible(question), default=default, err=err))


def plain(value: Any) -> Any:
    """Convert a value of a row to a JSON type."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no number for NaN or infinity.
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def terminal_width() -> int:
    """Return the terminal's width in characters: 80 without a terminal, at least 20."""
    return max(shutil.get_terminal_size().columns, 2 * NARROWEST_COLUMN)


def print_report(report: RunReport, root: str) -> None:
    """Print the report of a refresh."""
    counts = report.documents
    seen = f"{counted(counts.scanned, 'document')} in {report.seconds:.1f} s"
    parts = [f"{value} {name}" for name, value in counts.as_dict().items() if value and name != "scanned"]
    tell(f"{seen}: {', '.join(parts) or 'nothing to do'}.")
    work = report.work
    if work.chunks_written:
        cost = "" if work.cost_usd == 0 else f", {priced(work.cost_usd)}"
        tell(
            f"{counted(work.chunks_written, 'chunk')}: {work.chunks_embedded} embedded "
            f"({counted(work.tokens, 'token')}{cost}), {work.chunks_reused} reused."
        )
    tell(published_line(root, report))
    print_failures(report)
    print_kept(report.kept)
    for line in report.left_out:
        tell(f"Note: {line}.")
    for line in report.empty:
        tell(f"Warning: {line}.")
    for outage in report.outages:
        tell(f"Failed: {outage}.")
    for refusal in report.refused:
        tell(f"Refused: {refusal}.")


def print_failures(report: RunReport) -> None:
    """Print the documents that are not indexed, with reasons; by most frequent reason when there are many."""
    if len(report.failures) > SHOWN_FAILURES:
        for reason, count in failures_by_reason(report.failures).items():
            tell(f"  {count} x {reason}")
        tell("  every one of them: parquetry documents --status failed, --status skipped")
        return
    for failure in report.failures:
        tell(f"  {failure.status} {failure.uri}: {failure.stage}/{failure.reason}: {failure.detail}")


def print_kept(kept: Sequence[KeptDocuments]) -> None:
    """Print the documents kept because their source could not be listed completely."""
    for each in kept[:SHOWN_FAILURES]:
        tell(f"Kept: {each}.")
    rest = kept[SHOWN_FAILURES:]
    if rest:
        documents = counted(sum(each.documents for each in rest), "document")
        tell(f"Kept: {documents} at {len(rest)} more places; --json names them all.")


def print_plan(plan: RefreshPlan, *, verbose: bool) -> None:
    """Print the plan of a refresh."""
    for source in plan.sources:
        changes = [change for change in (*source.changes, *source.handed_over) if change.effort != "nothing"]
        tell(f"Source {source.source}: {counted(source.listed, 'document')}, {len(changes)} to do.")
        shown = changes if verbose else changes[:SHOWN_FAILURES]
        for change in shown:
            path = change.item.path if change.item else change.known.path if change.known else change.document_id
            tell(f"  {change.action} {path} ({change.reason})")
        if len(shown) < len(changes):
            tell(f"  ... and {len(changes) - len(shown)} more; -v shows all")
        for warning in source.warnings:
            tell(f"  note {warning}")
        if source.refused:
            tell(f"  Refused: {source.refused}.")
    print_kept(plan.kept)
    for line in plan.left_out:
        tell(f"Note: {line}.")
    for line in plan.empty:
        tell(f"Warning: {line}.")
    estimate = plan.estimate
    if not estimate.chunks:
        tell("Nothing to embed.")
        return
    likely = estimate.likely
    expected = f"{counted(likely.chunks, 'chunk')}, {counted(likely.tokens, 'token')}, {priced(likely.cost_usd)}"
    if estimate.unbounded:
        documents = counted(estimate.unbounded, "document")
        tell(f"Likely {expected}.")
        tell(
            f"No upper bound: the size of {documents} does not tell how much text they hold. refresh.budget_usd "
            "bounds what is spent."
        )
        return
    batch = "" if estimate.cost_usd_batch is None else f" ({dollars(estimate.cost_usd_batch)} in batch mode)"
    tell(
        f"At most {counted(estimate.chunks, 'chunk')}, {counted(estimate.tokens, 'token')}, "
        f"{priced(estimate.cost_usd)}{batch}; likely {expected}."
    )


def print_space(spaces: Iterable[DiskSpace]) -> None:
    """Print the disk space that a refresh would take."""
    for space in spaces:
        tell(f"Space: {space.line}.")
        if space.refusal is not None:
            tell(f"A refresh is refused: {space.refusal}.")


def priced(cost_usd: float | None) -> str:
    """Format a cost; an unknown one names the missing price."""
    return "cost unknown (no price is set)" if cost_usd is None else dollars(cost_usd)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], width: int = 60) -> None:
    """Print an aligned table of plain text; on a terminal, fit it to the width and wrap long cells."""
    values = [list(row) for row in rows]
    cells = [[_cell(*cell, width) for cell in zip(row, columns, strict=True)] for row in values]
    heads = [visible(name) for name in columns]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(heads)]
    if not sys.stdout.isatty():
        for row in [heads, ["-" * size for size in widths], *cells]:
            shown = (value.ljust(size) for value, size in zip(row, widths, strict=True))
            tell_text(_GAP.join(shown).rstrip())
        return
    limit = terminal_width()
    if sum(min(size, NARROWEST_COLUMN) for size in widths) + len(_GAP) * (len(widths) - 1) > limit:
        _print_records(heads, cells, limit)
    else:
        numbers = [all(map(_is_number, column)) for column in zip(*values, strict=True)] or [False] * len(columns)
        _print_fitted(heads, cells, numbers, limit)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _print_fitted(columns: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool], limit: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="none")
    for name, is_number in zip(columns, numbers, strict=True):
        table.add_column(
            Text(name),
            justify="right" if is_number else "left",
            overflow="fold",
            min_width=min(len(name), NARROWEST_COLUMN),
        )
    for row in cells:
        table.add_row(*map(Text, row))
    Console(width=limit, highlight=False).print(table)


def _print_records(columns: Sequence[str], cells: Sequence[Sequence[str]], limit: int) -> None:
    """Print rows with more columns than fit on a line: one value per line."""
    indent = max(map(len, columns)) + len(_GAP)
    for number, row in enumerate(cells):
        if number:
            tell()
        for name, value in zip(columns, row, strict=True):
            tell_text(f"{name.ljust(indent)}{_cut(value, max(limit - indent, NARROWEST_COLUMN))}".rstrip())


def _cell(value: Any, column: str, width: int) -> str:
    text = "" if value is None else str(plain(value))
    return _cut(visible(text if column in _NAMES else " ".join(_BLANKS.split(text)).strip()), width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
