"""Chunks that begin inside tables of annual reports, and what of the table's head each carries.

    python -m benchmarks.table_heads FINANCEBENCH_DEV

Counted are chunks with the row of a table (a label and two or more values) among their first two lines, two rows among
their first four, and no column names of their own. What a chunk carries is read from its headings.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from parquetry.chunking.chunker import Chunker
from parquetry.extract.registry import extract
from parquetry.model import Chunk, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.extraction import ExtractionSettings

PACKAGES = ("parquetry", "pypdfium2")
_PERIOD = r"(?:(?:19|20)\d\d|Q[1-4])\b"
COLUMNS = re.compile(rf"{_PERIOD}[^\n]*?\b{_PERIOD}")
UNIT = re.compile(r"\b(?:in|of) (?:[\w.$]+ ){0,3}(?:thousands|millions|billions|percent)\b|\$000", re.IGNORECASE)
_ROW = re.compile(r"\S*[A-Za-z]\S*.*?(?:\s[$(]*[\d—–-][\d,.]*[)%]*){2,}\s*$")
_YEARS = re.compile(r"(?:19|20)\d\d")
_AMOUNT = re.compile(r"\d[,.]\d|[$%)]\s*$")
_ENDS_WITH_DATE = re.compile(r"[A-Z][a-z]+ \d{1,2}, (?:19|20)\d\d$")
_STATEMENT = re.compile(
    r"balance sheet|statements? of (?:consolidated )?(?:income|earnings|operations|cash)|cash flow", re.IGNORECASE
)
_LONGEST_CAPTION = 12
"""characters of column names and units that are no caption"""


def is_row(line: str) -> bool:
    """Return True for a label with two or more values, not all of them years."""
    if _ROW.match(line) is None:
        return False
    values = re.findall(r"[\d,.]*\d", line)
    return any(not _YEARS.fullmatch(value) for value in values[-2:]) and not _ENDS_WITH_DATE.search(line.strip())


def begins_inside(text: str) -> bool:
    """Return True if the text of a chunk begins with rows of a table, without column names of its own."""
    lines = [line for line in text.splitlines() if line.strip()][:4]
    rows = [is_row(line) for line in lines]
    if not any(row and _AMOUNT.search(line) for row, line in zip(rows, lines, strict=True)):
        return False
    return any(rows[:2]) and sum(rows) >= 2 and not COLUMNS.search("\n".join(lines[: rows.index(True) + 1]))


def carried(chunk: Chunk) -> dict[str, bool]:
    """Return which parts of its table's head a chunk carries."""
    above = "\n".join(chunk.headings)
    head = chunk.headings[-1] if chunk.headings and (" | " in chunk.headings[-1] or UNIT.search(above)) else ""
    rest = [
        part
        for part in (head or above).split(" | ")
        if not COLUMNS.search(part) and not UNIT.fullmatch(part.strip("()")) and len(part) > _LONGEST_CAPTION
    ]
    return {
        "column_names": bool(COLUMNS.search(above)),
        "unit": bool(UNIT.search(above)),
        "caption": bool(rest) or bool(_STATEMENT.search(above)),
        "section": bool([each for each in chunk.headings if each != head][1:]),
    }


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    folder, name = _options(arguments)
    settings = ExtractionSettings(ocr=False)
    texts = [extract(RawDocument(file.read_bytes(), file.name), settings) for file in sorted(folder.glob("*.pdf"))]
    chunker = Chunker(ChunkingSettings(), None)
    begun = time.process_time()
    cut = [(text.text, chunker.split(text.text, text.parts, text.headings)) for text in texts]
    seconds = time.process_time() - begun
    found = [carried(chunk) for text, chunks in cut for chunk in chunks if begins_inside(text[chunk.start : chunk.end])]
    result = {
        "conditions": conditions(PACKAGES),
        "documents": len(texts),
        "chunks": sum(len(chunks) for _, chunks in cut),
        "chunks_that_begin_with_rows": len(found),
        "carried": {part: round(sum(each[part] for each in found) / len(found), 3) for part in found[0]},
        "processor_seconds_of_chunking": round(seconds, 2),
    }
    write_result(name, result)
    return result


def _options(arguments: Sequence[str] | None) -> tuple[Path, str]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="FinanceBench, development set")
    parser.add_argument("--name", default="table-heads", help="of the result")
    options = parser.parse_args(arguments)
    return options.folder, options.name


if __name__ == "__main__":
    main()
