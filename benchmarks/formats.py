"""Fidelity of every format beside MarkItDown, trafilatura and pypdf, and of encodings beside charset-normalizer.

    python -m benchmarks.formats [CORPORA] [--markitdown-python PYTHON]

Made documents with headings, text, lists and tables are written in each format; everybody reads the same files. Each
reader's text counts as it is, or without the signs of Markdown, whichever has more of what is expected and less of what
is not. With CORPORA, the development sets of `benchmarks.fidelity` are read by all as well.

- **Recall, precision, order**: of tokens, as in `benchmarks.fidelity`.
- **Rows**: share of the rows of tables whose cells are on one line, in order.
- **Cells**: share of the values that are in a Markdown table, in the row of their label and the column of their name.
- **Headed**: the same, of tables whose names stand above a row of dashes, as Markdown wants it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import formats_made as made
from benchmarks import formats_packed as packed
from benchmarks.conditions import conditions, write_result
from benchmarks.encodings import by_chardet, by_charset_normalizer
from benchmarks.fidelity import compare, readable
from benchmarks.fidelity_sets import SETS, plain_markdown
from benchmarks.formats_languages import encoded_texts
from parquetry.errors import DocumentError
from parquetry.extract import registry
from parquetry.model import RawDocument
from parquetry.settings.extraction import ExtractionSettings

_PEER = Path(__file__).parent / "peers" / "markitdown_texts.py"
PACKAGES = (
    "parquetry",
    "trafilatura",
    "pypdf",
    "charset-normalizer",
    "chardet",
    "reportlab",
    "python-pptx",
    "xlsxwriter",
)
_CUT = re.compile(r"(?<!\\)\|")
_COLUMNS = ("recall", "precision", "order", "rows", "cells", "headed")


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and what a reader of it should find."""

    write: Callable[[made.Document], str | bytes]
    ending: str
    holds: str = "all"
    """`all`, `tables` without any text, `first table`, or `speech`"""


FORMATS: dict[str, Format] = {
    "PDF, ruled tables": Format(packed.ruled_pdf, "pdf"),
    "PDF, tables without rules": Format(packed.plain_pdf, "pdf"),
    "DOCX": Format(packed.docx, "docx"),
    "PPTX": Format(packed.pptx, "pptx"),
    "XLSX": Format(packed.xlsx, "xlsx", "tables"),
    "ODT": Format(packed.odt, "odt"),
    "ODP": Format(packed.odp, "odp"),
    "ODS": Format(packed.ods, "ods", "tables"),
    "RTF": Format(made.rtf, "rtf"),
    "EPUB": Format(packed.epub, "epub"),
    "EML": Format(packed.eml, "eml"),
    "MSG": Format(packed.outlook, "msg"),
    "MHTML": Format(packed.mhtml, "mhtml"),
    "HTML": Format(made.html_page, "html"),
    "Markdown": Format(made.markdown, "md"),
    "reStructuredText": Format(made.rst, "rst"),
    "LaTeX": Format(made.latex, "tex"),
    "Org": Format(made.org, "org"),
    "AsciiDoc": Format(made.asciidoc, "adoc"),
    "DocBook": Format(made.docbook, "xml"),
    "JATS": Format(made.jats, "xml"),
    "Atom": Format(made.atom, "atom"),
    "Jupyter": Format(made.notebook, "ipynb"),
    "CSV": Format(made.csv, "csv", "first table"),
    "JSON": Format(made.json_records, "json", "first table"),
    "SRT": Format(made.srt, "srt", "speech"),
    "WebVTT": Format(made.vtt, "vtt", "speech"),
}


@dataclass(frozen=True, slots=True)
class Task:
    """A file to be read, and what is in it."""

    kind: str
    filename: str
    content: bytes
    expected: str
    tables: tuple[made.Table, ...]


Reader = Callable[[Sequence[Task]], list[str]]
"""texts of the files, in their order; empty for files that are not read"""


def made_tasks(count: int) -> list[Task]:
    """Return `count` documents in each format."""
    tasks = []
    for number in range(count):
        document = made.made_document(f"formats {number}")
        for place, (kind, form) in enumerate(FORMATS.items()):
            tables = {"first table": document.tables[:1], "speech": ()}.get(form.holds, document.tables)
            written = form.write(document)
            content = written.encode() if isinstance(written, str) else written
            name = f"{place:02}-{number:02}.{form.ending}"
            tasks.append(Task(kind, name, content, _expected(document, form.holds, tables), tables))
    return tasks


def _expected(document: made.Document, holds: str, tables: Sequence[made.Table]) -> str:
    if holds == "all":
        return made.words_of(document)
    if holds == "speech":
        return made.spoken(document)
    captions = [[table.caption] if holds == "tables" else [] for table in tables]
    return "\n".join(
        " ".join(row)
        for table, caption in zip(tables, captions, strict=True)
        for row in (caption, *made.rows_of(table))
    )


def corpora_tasks(corpora: Path) -> list[Task]:
    """Return the documents of the development sets."""
    return [
        Task(name, f"{place:02}-{number:04}-{Path(pair.filename).name}", pair.content, pair.expected, ())
        for place, (name, pairs) in enumerate(SETS.items())
        for number, pair in enumerate(pairs(corpora))
    ]


def ours(tasks: Sequence[Task]) -> list[str]:
    """Return our texts, without the repeated headers of long tables."""
    settings = ExtractionSettings()
    texts = []
    for task in tasks:
        try:
            texts.append(registry.extract(RawDocument(task.content, task.filename), settings).text)
        except DocumentError:
            texts.append("")
    return texts


def our_words(task: Task) -> str:
    try:
        return readable(registry.extract(RawDocument(task.content, task.filename), ExtractionSettings()))
    except DocumentError:
        return ""


def trafilatura_alone(tasks: Sequence[Task]) -> list[str]:
    import trafilatura

    from parquetry.extract.html.content import FINDER_OPTIONS

    return [
        trafilatura.extract(task.content.decode("utf-8", "replace"), output_format="markdown", **FINDER_OPTIONS) or ""
        if task.filename.endswith((".html", ".htm"))
        else ""
        for task in tasks
    ]


def pypdf_alone(tasks: Sequence[Task]) -> list[str]:
    import io

    import pypdf

    texts = []
    for task in tasks:
        try:
            pages = pypdf.PdfReader(io.BytesIO(task.content)).pages if task.filename.endswith(".pdf") else ()
            texts.append("\n".join(page.extract_text() for page in pages))
        except Exception:  # noqa: BLE001 (a file that a peer cannot read is empty)
            texts.append("")
    return texts


def markitdown(python: str) -> tuple[Reader, dict[str, str]]:
    """Return a reader in an environment of its own, and where its version will be."""
    told: dict[str, str] = {}

    def read(tasks: Sequence[Task]) -> list[str]:
        with TemporaryDirectory() as folder:
            for task in tasks:
                Path(folder, task.filename).write_bytes(task.content)
            done = subprocess.run([python, str(_PEER), folder], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{python} {_PEER.name} ended with {done.returncode}: {done.stderr[-2000:]}")
        answer = json.loads(done.stdout.splitlines()[-1])
        told["markitdown"] = answer["version"]
        return [answer["texts"][task.filename] or "" for task in tasks]

    return read, told


def figures_of(task: Task, text: str, words: str | None = None) -> dict[str, float]:
    """Return the figures of one reader's text.

    Args:
        task: what was read.
        text: the text.
        words: the text without markup; None to try both.
    """
    candidates = [words] if words is not None else [text, plain_markdown(text)]
    best = max(
        (compare(task.filename, task.expected, each) for each in candidates), key=lambda row: row.recall + row.precision
    )
    found = {"recall": best.recall, "precision": best.precision if text else 0.0, "order": best.order if text else 0.0}
    return found | tables_of(text, task.tables) if task.tables else found


def tables_of(text: str, tables: Sequence[made.Table]) -> dict[str, float]:
    """Return the shares of rows on one line, and of cells in their row and column."""
    lines = [_plain(line) for line in text.split("\n")]
    rows = [row for table in tables for row in made.rows_of(table)]
    kept = sum(any(_in_order(row, line) for line in lines) for row in rows)
    cells = made.cells_of(tables)
    placed = {name: placed_cells(text, headed=name == "headed") for name in ("cells", "headed")}
    return {"rows": kept / len(rows)} | {
        name: sum(cell in found for cell in cells) / len(cells) for name, found in placed.items()
    }


def _plain(line: str) -> str:
    return line.replace("\\", "").replace("*", "")


def _in_order(row: Sequence[str], line: str) -> bool:
    place = 0
    for cell in row:
        found = re.compile(rf"(?<![\w.,]){re.escape(cell)}(?![\w]|[.,]\d)").search(line, place)
        if found is None:
            return False
        place = found.end()
    return True


def placed_cells(text: str, *, headed: bool) -> set[tuple[str, str, str]]:
    """Return label of the row, name of the column and value of all cells of the Markdown tables of a text.

    Args:
        text: a text.
        headed: only what stands below a row of dashes counts, with the names above it; otherwise the first filled row
            of a table has the names.
    """
    placed: set[tuple[str, str, str]] = set()
    head: list[str] = []
    before: list[str] = []
    for line in text.split("\n"):
        cells = _cells(line)
        if cells and all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            head = before if headed or any(before) else head
        elif head:
            placed |= {(cells[0], name, value) for name, value in zip(head[1:], cells[1:], strict=False)}
        elif not headed and any(cells):
            head = cells
        head = head if cells else []
        before = cells
    return placed


def _cells(line: str) -> list[str]:
    line = line.strip()
    return [_plain(cell).strip() for cell in _CUT.split(line.strip("|"))] if line.startswith("|") else []


def measure(tasks: Sequence[Task], readers: Mapping[str, Reader]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the mean figures of each kind by reader; readers that read less than half of a kind are left out."""
    found: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for name, read in readers.items():
        texts = read(tasks)
        for task, text in zip(tasks, texts, strict=True):
            found[task.kind][name].append(figures_of(task, text, our_words(task) if name == "parquetry" else None))
    return {
        kind: {
            name: {
                column: round(sum(row[column] for row in rows) / len(rows), 4)
                for column in _COLUMNS
                if column in rows[0]
            }
            for name, rows in by_reader.items()
            if 2 * sum(row["recall"] > 0 for row in rows) > len(rows)
        }
        for kind, by_reader in found.items()
    }


def encodings(readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return how many texts in which encodings are read right, to every character."""
    texts = encoded_texts()
    tasks = [Task(text.encoding, f"{n:04}.txt", text.content, text.text, ()) for n, text in enumerate(texts)]
    plain: dict[str, Reader] = {
        "charset-normalizer": lambda tasks: [by_charset_normalizer(task.content) for task in tasks],
        "chardet": lambda tasks: [by_chardet(task.content) for task in tasks],
    }
    right: dict[str, Any] = {}
    for name, read in {**readers, **plain}.items():
        found = read(tasks)
        good = [text.strip() == task.expected.strip() for task, text in zip(tasks, found, strict=True)]
        wrong = sorted({f"{text.language} {text.encoding}" for text, fine in zip(texts, good, strict=True) if not fine})
        if any(good):
            right[name] = {"right": sum(good), "of": len(tasks), "wrong": wrong}
    return right


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats")
    parser.add_argument("corpora", type=Path, nargs="?", help="folder that holds the sets of benchmarks.fidelity")
    parser.add_argument("--documents", type=int, default=10, help="made documents, each in every format")
    parser.add_argument("--markitdown-python", help="Python of an environment with the group bench-markitdown")
    parser.add_argument("--name", default="formats", help="name of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    readers: dict[str, Reader] = {"parquetry": ours, "trafilatura": trafilatura_alone, "pypdf": pypdf_alone}
    versions: dict[str, str] = {}
    if options.markitdown_python:
        readers["markitdown"], versions = markitdown(options.markitdown_python)
    figures = measure(made_tasks(options.documents), readers)
    sets = measure(corpora_tasks(options.corpora), readers) if options.corpora else {}
    for kind, by_reader in (figures | sets).items():
        for name, row in by_reader.items():
            print(f"{kind:26} {name:12} " + " ".join(f"{column} {value:.3f}" for column, value in row.items()))
    right = encodings({name: read for name, read in readers.items() if name in ("parquetry", "markitdown")})
    for name, counts in right.items():
        print(f"encodings: {name} {counts['right']} of {counts['of']}")
    result = {
        "conditions": conditions(PACKAGES) | {"peers": versions},
        "documents": options.documents,
        "made": figures,
        "sets": sets,
        "encodings": right,
    }
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


if __name__ == "__main__":
    main(sys.argv[1:])
