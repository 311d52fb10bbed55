"""reStructuredText: text unchanged, headings, and nothing read from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from docutils import nodes

from parquetry.extract.rst import RstExtractor, parse_rst
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

SOURCE = """\
==============
 Pump manual
==============

:Author: Jo Doe
:Date: 2024-05-01

Intro with ``code``.

Setup
=====

Steps
-----

#. Open the *valve*.

.. code-block:: text

   Not a title
   -----------

Use of :ref:`x`
===============

Text.
"""


def read(text: str) -> Extraction:
    return RstExtractor().extract(RawDocument(text.encode(), "page.rst"), "text/x-rst", ExtractionSettings())


def test_headings_have_their_levels_and_places() -> None:
    extraction = read(SOURCE)
    assert [(heading.level, heading.title) for heading in extraction.headings][:3] == [
        (1, "Pump manual"),
        (2, "Setup"),
        (3, "Steps"),
    ]
    assert len(extraction.headings) == 4
    assert extraction.headings[3].level == 2
    starts = [extraction.text[heading.start :].split("\n")[0] for heading in extraction.headings]
    assert starts == ["==============", "Setup", "Steps", "Use of :ref:`x`"]
    assert extraction.title == "Pump manual"
    assert extraction.metadata == {"author": "Jo Doe", "date": "2024-05-01"}


def test_text_is_kept_as_the_source() -> None:
    assert read(SOURCE).text == SOURCE.strip()


def test_directives_read_no_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("planted-secret\n==============\n\ntext\n")
    source = (
        f"Title\n=====\n\n.. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n"
        f".. csv-table::\n   :file: {secret}\n\n.. literalinclude:: {secret}\n"
    )
    assert "planted" not in parse_rst(source).astext()
    assert [heading.title for heading in read(source).headings] == ["Title"]


def test_broken_markup_is_kept_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    extraction = read("Title\n===\n\nUnclosed *emphasis and `role\n\n.. unknown:: x\n\n   inside\n\n|missing|_\n")
    assert "Unclosed *emphasis" in extraction.text
    assert "inside" in extraction.text
    assert capfd.readouterr().err == ""


def test_a_very_long_line_does_not_hide_the_headings() -> None:
    assert [heading.title for heading in read("word " * 4000 + "\n\nTitle\n=====\n\ntext\n").headings] == ["Title"]


def test_grid_tables_hide_no_heading_and_are_none() -> None:
    """Grid tables are removed before docutils reads the text; text that only looks like one stays."""
    grid = "+------+------+\n| a    | b    |\n+------+------+\n| T    | c    |\n| ==   |      |\n+------+------+\n"
    looks_like_one = "Text of it\n+---+\nNo title\n========\n"
    text = f"One\n===\n\n{grid}\nTwo\n===\n\n{looks_like_one}\n- item\n\n  {grid}\nThree\n=====\n\nx\n"
    extraction = read(text)
    assert [heading.title for heading in extraction.headings] == ["One", "Two", "Three"]
    assert extraction.text == text.strip()
    assert not list(parse_rst(text).findall(nodes.table))
