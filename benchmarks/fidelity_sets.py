"""Development sets with expected text: pairs of a document and its readable words."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

_UNSEEN = re.compile(r"<(script|style|textarea|title)\b.*?(?:</\1>|\Z)", re.S | re.I)
_INLINE_TAG = re.compile(r"</?(?:a|abbr|b|code|del|em|i|s|span|strong|u)(?:\s[^>]*)?>", re.I)
_TAG = re.compile(r"<[^>]*>")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", re.M | re.S)
_ALTERNATIVE = re.compile(r'<img[^>]*\salt="([^"]*)"[^>]*>')


@dataclass(frozen=True, slots=True)
class Pair:
    """A document and its expected text."""

    name: str
    filename: str
    content: bytes
    expected: str
    """plain text without markup"""


def markitdown(root: Path) -> Iterator[Pair]:
    """Yield PDFs with the Markdown from MarkItDown's tests."""
    folder = root / "markitdown" / "test_files"
    for expected in sorted((folder / "expected_outputs").glob("*.md")):
        for document in sorted(folder.glob(f"{expected.stem}.pdf")):
            yield _pair(document, plain_markdown(expected.read_text("utf-8")), document.name)


def unstructured(root: Path) -> Iterator[Pair]:
    """Yield documents with the JSON elements from unstructured's tests."""
    folder = root / "unstructured"
    documents = {
        file.name: file for file in sorted(folder.rglob("*")) if file.is_file() and "expected" not in file.parts
    }
    seen: set[tuple[str, str]] = set()
    for expected in sorted((folder / "expected" / "expected-structured-output").rglob("*.json")):
        document = documents.get(expected.stem)
        elements = json.loads(expected.read_text("utf-8"))
        text = "\n".join(element.get("text", "") for element in elements)
        # Overlapping chunks repeat the text at their boundaries.
        if document is None or "chunking" in expected.parent.name or (document.name, text) in seen:
            continue
        seen.add((document.name, text))
        yield _pair(document, text, document.name)


def pypdf(root: Path) -> Iterator[Pair]:
    """Yield PDFs with the text from pypdf's tests, plain or in its layout mode."""
    folder = root / "pypdf-resources" / "resources"
    for expected in sorted(folder.glob("*.txt")):
        stem = expected.name.removesuffix(".txt").removesuffix(".layout")
        document = folder / f"{stem}.pdf"
        text = expected.read_text("utf-8", "replace")
        if document.exists() and " " in text:
            yield _pair(document, text, expected.name)


def commonmark_markdown(root: Path) -> Iterator[Pair]:
    """Yield the examples of the CommonMark specification as Markdown files; the text of the HTML is expected."""
    return _commonmark(root, "md")


def commonmark_html(root: Path) -> Iterator[Pair]:
    """Yield the HTML of the same examples."""
    return _commonmark(root, "html")


def csv_spectrum(root: Path) -> Iterator[Pair]:
    """Yield CSV files with their rows from JSON."""
    folder = root / "csv-spectrum"
    for document in sorted((folder / "csvs").glob("*.csv")):
        rows = json.loads((folder / "json" / f"{document.stem}.json").read_text("utf-8"))
        rows = [rows] if isinstance(rows, dict) else rows
        names = list(rows[0]) if rows else []
        yield _pair(
            document, "\n".join([*names, *(str(value) for row in rows for value in row.values())]), document.name
        )


SETS: dict[str, Callable[[Path], Iterator[Pair]]] = {
    "markitdown": markitdown,
    "unstructured": unstructured,
    "pypdf": pypdf,
    "commonmark-md": commonmark_markdown,
    "commonmark-html": commonmark_html,
    "csv-spectrum": csv_spectrum,
}


def plain_markdown(text: str) -> str:
    """Return the readable words of Markdown."""
    return plain_html(str(MarkdownIt("commonmark").enable("table").render(text)))


def plain_html(text: str) -> str:
    """Return the readable words of HTML, including image descriptions."""
    text = _ALTERNATIVE.sub(r" \1 ", _UNSEEN.sub(" ", _COMMENT.sub(" ", text)))
    return html.unescape(_TAG.sub(" ", _INLINE_TAG.sub("", text)))


def commonmark_examples(specification: str) -> Iterator[tuple[str, str]]:
    """Yield Markdown and HTML of each example."""
    for markdown, rendered in _EXAMPLE.findall(specification):
        yield markdown.replace("→", "\t"), rendered.replace("→", "\t")


def _commonmark(root: Path, kind: str) -> Iterator[Pair]:
    specification = (root / "commonmark" / "spec.txt").read_text("utf-8")
    for number, (markdown, rendered) in enumerate(commonmark_examples(specification), 1):
        expected = plain_html(rendered)
        if expected.strip():
            content = markdown if kind == "md" else f"<!DOCTYPE html><html><body>{rendered}</body></html>"
            yield Pair(f"example {number}", f"example-{number}.{kind}", content.encode(), expected)


def _pair(document: Path, expected: str, name: str) -> Pair:
    return Pair(name, document.name, document.read_bytes(), expected)
