"""Main content of made web pages, beside trafilatura alone with the options that we use, in one run.

    python -m benchmarks.pages [--label NAME]

A token is counted as in `benchmarks.fidelity`, by repetition. Figures are means over pages. A row of a table counts as
kept if all of its cells are in one line of the text.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trafilatura
from selectolax.lexbor import LexborHTMLParser

from benchmarks.conditions import conditions, write_result
from benchmarks.fidelity import compare, readable
from benchmarks.pages_made import MadePage, made_pages
from parquetry.errors import DocumentError
from parquetry.extract import registry
from parquetry.extract.html.content import FINDER_OPTIONS
from parquetry.model import RawDocument
from parquetry.settings.extraction import ExtractionSettings


def ours(page: MadePage) -> tuple[str, float]:
    """Return our plain text, and the share of table rows that are one line."""
    try:
        extraction = registry.extract(RawDocument(page.html.encode(), "page.html"), ExtractionSettings())
    except DocumentError:
        return "", 0.0
    return readable(extraction), _rows_kept(page.html, extraction.text)


def alone(page: MadePage) -> tuple[str, float]:
    text = trafilatura.extract(page.html, **FINDER_OPTIONS) or ""
    return text, _rows_kept(page.html, text)


def _rows_kept(html: str, text: str) -> float:
    wanted = [[cell.text().strip() for cell in row.iter()] for row in LexborHTMLParser(html).css("tr")]
    wanted = [row for row in wanted if len(row) > 1]
    lines = text.split("\n")
    kept = sum(any(all(cell in line for cell in row) for line in lines) for row in wanted)
    return kept / len(wanted) if wanted else 1.0


def measure(pages: Sequence[MadePage]) -> dict[str, Any]:
    """Return recall, precision, F1 and rows kept for each reader, of all pages and of each kind."""
    figures: dict[str, dict[str, list[tuple[float, ...]]]] = defaultdict(lambda: defaultdict(list))
    for page in pages:
        for name, read in (("parquetry", ours), ("trafilatura", alone)):
            text, rows = read(page)
            row = compare(page.name, page.expected, text)
            both = row.recall + row.precision
            f1 = 2 * row.recall * row.precision / both if both else 0.0
            for kind in ("all", page.kind):
                figures[kind][name].append((row.recall, row.precision, f1, rows))
    columns = ("recall", "precision", "f1", "rows")
    return {
        kind: {
            name: dict(zip(columns, (round(sum(part) / len(rows), 4) for part in zip(*rows, strict=True)), strict=True))
            for name, rows in readers.items()
        }
        for kind, readers in figures.items()
    }


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages")
    parser.add_argument("--pages", type=int, default=20, help="pages of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--label", default="pages", help="name of the result")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    figures = measure(list(made_pages(options.pages, options.seed)))
    for kind, readers in figures.items():
        for name, row in readers.items():
            print(f"{kind:18} {name:12} " + " ".join(f"{column} {value:.3f}" for column, value in row.items()))
    result = {
        "conditions": conditions(("parquetry", "trafilatura", "selectolax", "lxml")),
        "pages_of_each_kind": options.pages,
        "seed": options.seed,
        "figures": figures,
    }
    print(f"written to {write_result(options.label, result, options.results)}")
    return result


if __name__ == "__main__":
    main()
