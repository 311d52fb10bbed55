"""Jupyter notebooks: prose, code and its printed output."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, fenced
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.markdown import add_markdown
from parquetry.extract.terminal import as_shown
from parquetry.model import Extraction, RawDocument, Scalar

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings


class NotebookExtractor(ListedExtractor):
    """Reads Jupyter notebooks of format 3 and 4."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        try:
            notebook = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BrokenDocument("damaged", f"not a notebook: {error}") from error
        if not isinstance(notebook, dict):
            raise BrokenDocument("damaged", "not a notebook: no object with cells")
        about = _object(notebook.get("metadata"))
        language = _language(about)
        builder = TextBuilder()
        first: str | None = None
        for cell in _cells(notebook):
            title = _add_cell(builder, cell, language)
            first = first or title
        extraction = builder.build(
            title=about.get("title") if isinstance(about.get("title"), str) else first,
            metadata=_metadata(about, language),
            media_type=media_type,
            extractor=self.id,
            warnings=replaced(document.content, text, encoding),
        )
        if not extraction.text:
            raise SkippedDocument("no-text", "the notebook has no cells with text")
        return extraction


def _cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    cells = list(_list(notebook.get("cells")))
    for sheet in _list(notebook.get("worksheets")):
        cells += _list(_object(sheet).get("cells"))
    return [cell for cell in cells if isinstance(cell, dict)]


def _add_cell(builder: TextBuilder, cell: dict[str, Any], language: str) -> str | None:
    source = _joined(cell.get("source", cell.get("input")))
    kind = cell.get("cell_type")
    if kind == "markdown":
        return add_markdown(builder, source)
    if kind == "heading":
        level = cell.get("level")
        builder.heading(level if isinstance(level, int) and 1 <= level <= 6 else 1, source)
        return source.strip() or None
    if kind == "code":
        _add_fenced(builder, source, language)
        for output in _list(cell.get("outputs")):
            _add_fenced(builder, _output(_object(output)), "")
    else:
        builder.text(source)
    return None


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        return f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
    # Format 3 has the texts beside the type, not below `data`.
    data = _object(output.get("data"))
    text = data.get("text/plain", data.get("text/markdown", output.get("text")))
    return as_shown(_joined(text))


def _add_fenced(builder: TextBuilder, text: str, language: str) -> None:
    text = text.strip("\n")
    if not text.strip():
        return
    builder.text(fenced(text, language), keep_layout=True)


def _language(about: dict[str, Any]) -> str:
    for section in ("language_info", "kernelspec"):
        for key in ("name", "language"):
            value = _object(about.get(section)).get(key)
            if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w+#-]{0,20}", value):
                return value.lower().removesuffix("3") if value.lower().startswith("python") else value.lower()
    return "python"


def _metadata(about: dict[str, Any], language: str) -> dict[str, Scalar]:
    names = [_object(author).get("name") for author in _list(about.get("authors"))]
    return {"language": language, "author": ", ".join(name for name in names if isinstance(name, str))}


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
