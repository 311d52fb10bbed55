"""Notebooks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.notebook import NotebookExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(notebook: Any) -> Extraction:
    content = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    kind = "application/x-ipynb+json"
    return NotebookExtractor().extract(RawDocument(content, "a.ipynb"), kind, ExtractionSettings())


CELLS = [
    {"cell_type": "markdown", "source": ["# Pressure\n", "\n", "Some *prose*."]},
    {
        "cell_type": "code",
        "source": "print('```')",
        "outputs": [
            {"output_type": "stream", "text": ["\u001b[31mred\u001b[0m\n", "line"]},
            {"output_type": "execute_result", "data": {"text/plain": "42", "text/html": "<b>planted-html</b>"}},
            {"output_type": "display_data", "data": {"image/png": "planted-image"}},
            {"output_type": "error", "ename": "ValueError", "evalue": "bad valve", "traceback": ["planted-trace"]},
        ],
    },
    {"cell_type": "raw", "source": "raw words"},
]


def test_prose_code_and_what_it_printed_are_read_in_order() -> None:
    about = {"kernelspec": {"language": "julia"}, "authors": [{"name": "Jo"}]}
    extraction = read({"nbformat": 4, "metadata": about, "cells": CELLS})
    assert extraction.text == (
        "# Pressure\n\nSome *prose*.\n\n````julia\nprint('```')\n````\n\n```\nred\nline\n```\n\n```\n42\n```\n\n"
        "```\nValueError: bad valve\n```\n\nraw words"
    )
    assert [(heading.start, heading.title) for heading in extraction.headings] == [(0, "Pressure")]
    assert extraction.title == "Pressure"
    assert extraction.metadata == {"language": "julia", "author": "Jo"}


def test_heading_of_a_cell_that_begins_with_a_space_that_is_none_to_markdown_begins_with_its_text() -> None:
    cells = [{"cell_type": "raw", "source": "words"}, {"cell_type": "markdown", "source": "\u00a0Leave\n===\n\ntext"}]
    extraction = read({"nbformat": 4, "cells": cells})
    assert [extraction.text[heading.start :].split("\n")[0] for heading in extraction.headings] == ["Leave"]


def test_a_notebook_of_format_3_is_read() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old"]},
        {"cell_type": "code", "input": ["x = 1"], "outputs": [{"output_type": "pyout", "text": ["seven"]}]},
    ]
    assert read({"nbformat": 3, "worksheets": [{"cells": cells}]}).text == (
        "## Old\n\n```python\nx = 1\n```\n\n```\nseven\n```"
    )


@pytest.mark.parametrize("content", [b"[1]", b"{", b"[" * 100_000])
def test_what_is_not_a_notebook_is_damaged(content: bytes) -> None:
    with pytest.raises(BrokenDocument) as caught:
        read(content)
    assert caught.value.reason == "damaged"


@pytest.mark.parametrize("cells", [[], [{"cell_type": "markdown", "source": 5}], [7, None], "x"])
def test_a_notebook_without_text_is_skipped(cells: Any) -> None:
    with pytest.raises(SkippedDocument):
        read({"cells": cells, "metadata": None})
