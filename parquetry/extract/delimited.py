"""CSV and related formats in any dialect."""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TABLE_BLOCK_CHARACTERS, TextBuilder
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.grid import are_periods_over_numbers
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

SAMPLE_CHARACTERS = 64 * 1024
"""characters from the start of the text from which the dialect is detected"""
_DELIMITERS = ",;\t|"
_MAX_FIELD_LINES = 200
"""lines of a quoted field above which its quotation mark is taken as never closed"""
_DECLARED = re.compile(r"\Asep=(.)\n", re.IGNORECASE)
_VALUE = re.compile(
    r"^[-+(]?[$€£¥]?\s*\d[\d.,:/\s%)eE+-]*$|^\d{4}-\d{2}-\d{2}|^(?:true|false|null|nan|none)$", re.IGNORECASE
)
_MAX_PREAMBLE = 5

Rows = list[list[str]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Format of a delimited file: its delimiter and quoting."""

    delimiter: str
    quoted: bool
    """True if quotation marks enclose fields"""
    escaped: bool
    """True if a quotation mark within a field is written `\\"` instead of doubled"""


class DelimitedExtractor(ListedExtractor):
    """Reads CSV and TSV files as tables."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        warnings = list(replaced(document.content, text, encoding))
        text = text.replace("\x00", "")
        prefer = "\t" if media_type == "text/tab-separated-values" else ","
        rows, problems = read_rows(text, prefer)
        if not rows:
            raise SkippedDocument("no-text", "the table has no cells with text")
        builder = _write(rows)
        return builder.build(
            title=None,
            metadata={"encoding": encoding, "rows": len(rows), "columns": max(map(len, rows))},
            media_type=media_type,
            extractor=self.id,
            warnings=[*warnings, *problems],
        )


def read_rows(text: str, prefer: str = ",") -> tuple[Rows, list[str]]:
    """Return the cells of a delimited text, without empty rows.

    Args:
        text: decoded text.
        prefer: delimiter to use if several fit, or none.

    Returns:
        The rows, and warnings.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    declared = _DECLARED.match(text)
    if declared is not None:
        text = text[declared.end() :]
    dialect = find_dialect(text, declared[1] if declared is not None else None, prefer)
    rows = _parse(text, dialect)
    warnings: list[str] = []
    if dialect.quoted and any(cell.count("\n") > _MAX_FIELD_LINES for row in rows for cell in row):
        rows = _parse(text, Dialect(dialect.delimiter, quoted=False, escaped=False))
        warnings.append("a quotation mark is never closed: quotation marks were read as text")
    return [row for row in rows if any(cell.strip() for cell in row)], warnings


def find_dialect(text: str, delimiter: str | None = None, prefer: str = ",") -> Dialect:
    """Return the dialect in which the rows of a text agree best on their number of fields."""
    sample = text[:SAMPLE_CHARACTERS]
    if len(text) > SAMPLE_CHARACTERS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    escaped = sample.count('\\"') > 0 and sample.count('""') < sample.count('\\"')
    best = Dialect(delimiter or prefer, quoted=True, escaped=escaped)
    if delimiter is not None:
        return best
    highest = 0.0
    for candidate in sorted(_DELIMITERS, key=lambda sign: sign != prefer):
        dialect = Dialect(candidate, quoted=True, escaped=escaped)
        score = _consistency(_parse(sample, dialect))
        if score > highest:
            best, highest = dialect, score
    return best


def _consistency(rows: Rows) -> float:
    """Score how well rows agree on their number of fields; 0 for a single column."""
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        return 0
    width, agreeing = max(Counter(map(len, rows)).items(), key=lambda entry: (entry[1], entry[0]))
    if width < 2:
        return 0
    share = agreeing / len(rows)
    # In a semicolon-separated file, commas in most of the cells give many columns that do not agree.
    return share**2 * (1 + min(width, 20) / 40)


def _parse(text: str, dialect: Dialect) -> Rows:
    # The limit protects programs that keep fields in memory; here the size of the file already bounds them.
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    reader = csv.reader(
        io.StringIO(text, newline="\n"),
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
        escapechar="\\" if dialect.escaped else None,
        skipinitialspace=dialect.delimiter != "\t",
    )
    return list(reader)


def _write(rows: Rows) -> TextBuilder:
    preamble, rows = _split_preamble(rows)
    rows = _without_empty_columns(rows)
    header = has_header(rows)
    characters = sum(len(cell) for row in rows for cell in row) / max(1, len(rows))
    if header and len(rows) > 1 and characters > TABLE_BLOCK_CHARACTERS:
        builder = TextBuilder("text")
        _add_preamble(builder, preamble)
        add_records(builder, rows[0], rows[1:])
        return builder
    builder = TextBuilder("table")
    _add_preamble(builder, preamble)
    builder.table(rows, header=header)
    return builder


def add_records(builder: TextBuilder, names: Sequence[str], rows: Rows) -> None:
    """Append rows as lines of `name: value`, for tables too wide to split between rows."""
    for row in rows:
        lines = []
        for place, cell in enumerate(row):
            name = names[place].strip() if place < len(names) else ""
            if cell.strip():
                lines.append(f"{name}: {cell.strip()}" if name else cell.strip())
        builder.text("\n".join(lines))


def _add_preamble(builder: TextBuilder, preamble: Rows) -> None:
    for row in preamble:
        builder.text(" ".join(cell.strip() for cell in row if cell.strip()))


def _split_preamble(rows: Rows) -> tuple[Rows, Rows]:
    """Split off the title lines above the table: rows with a single cell where the rows below have several."""
    filled = [sum(1 for cell in row if cell.strip()) for row in rows]
    width = Counter(filled).most_common(1)[0][0]
    count = 0
    while count < min(_MAX_PREAMBLE, len(rows) - 2) and width > 1 and filled[count] == 1:
        count += 1
    return rows[:count], rows[count:]


def _without_empty_columns(rows: Rows) -> Rows:
    """Remove columns that are empty in all rows; pad only the first row to full width."""
    kept = sorted({place for row in rows for place, cell in enumerate(row) if cell.strip()})
    left = [[row[place] for place in kept[: bisect_left(kept, len(row))]] for row in rows]
    left[0] += [""] * (len(kept) - len(left[0]))
    return left


def has_header(rows: Rows) -> bool:
    """Return True if the first row names the columns: it has no values but periods, no duplicates, and rows follow."""
    if len(rows) < 2:
        return False
    if are_periods_over_numbers(rows):
        return True
    first = [cell.strip() for cell in rows[0]]
    named = [cell for cell in first if cell]
    if not named or any(_VALUE.match(cell) or len(cell) > 200 for cell in named) or len(set(named)) < len(named):
        return False
    # An index column often has no name.
    return len(named) >= len(first) - 1 or len(named) > len(first) / 2
