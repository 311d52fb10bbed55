"""The benchmark of formats: its documents are the same each time, and its figures tell what of a table is where."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks import formats
from benchmarks.formats_languages import encoded_texts
from benchmarks.formats_made import Table, made_document, words_of

TABLE = Table("Sales", ("Part", "Unit", "2023"), (("Hook", "kg", "1,204"), ("Rope", "%", "9.5")))
ALL = {("Hook", "Unit", "kg"), ("Hook", "2023", "1,204"), ("Rope", "Unit", "%"), ("Rope", "2023", "9.5")}


def test_documents_are_the_same_for_a_seed_and_no_label_occurs_twice():
    assert made_document("a") == made_document("a") != made_document("b")
    document = made_document("a")
    labels = [row[0] for table in document.tables for row in table.rows]
    assert len(labels) == len(set(labels)) > 5
    assert all(label in words_of(document) for label in labels)


@pytest.mark.parametrize(
    ("text", "rows", "cells", "headed"),
    [
        ("| Part | Unit | 2023 |\n|---|---|---|\n| Hook | kg | 1,204 |\n| Rope | % | 9.5 |", 1, 1, 1),
        ("|  |  |  |\n| --- | --- | --- |\n| Part | Unit | 2023 |\n| Hook | kg | 1,204 |\n| Rope | % | 9.5 |", 1, 1, 0),
        ("| Part | Unit | 2023 |\n|---|---|---|\n| Hook | kg | 1,204 |\n| Rope% |  | 9.5 |", 2 / 3, 0.5, 0.5),
        ("| Sales |\n| Part | Unit | 2023 |\n|---|---|---|\n| Hook | kg | 1,204 |\n| Rope | % | 9.5 |", 1, 1, 1),
        ("Part Unit 2023\nHook kg 1,204\nRope % 9.5", 1, 0, 0),
        ("Part\nUnit\n2023\nHook\nkg\n1,204\nRope\n%\n9.5", 0, 0, 0),
        ("| Part | Unit | 2023 |\n\n| Hook | kg | 1,204 |\n| Rope | % | 9.5 |", 1, 0, 0),
    ],
    ids=[
        "table",
        "names below an empty head",
        "a cell in another",
        "caption as a row",
        "lines",
        "a line for each cell",
        "taken apart",
    ],
)
def test_rows_and_cells_count_where_they_belong(text: str, rows: float, cells: float, headed: float):
    found = formats.tables_of(text, [TABLE])
    assert found == {"rows": pytest.approx(rows), "cells": cells, "headed": headed}


def test_numbers_that_hold_a_value_are_not_that_value():
    assert formats.tables_of("Part Unit 2023\nHook kg 11,204\nRope % 9.55", [TABLE])["rows"] == pytest.approx(1 / 3)


def test_texts_are_in_their_encodings():
    texts = encoded_texts()
    assert len({text.encoding for text in texts}) > 40
    assert all(text.content.decode(text.encoding) == text.text for text in texts)


@pytest.mark.slow
def test_figures_tell_every_format_and_reader(tmp_path):
    result = formats.main(["--documents", "1", "--name", "few", "--results", str(tmp_path)])
    assert json.loads((tmp_path / "few.json").read_text())["made"] == result["made"]
    assert result["made"].keys() == formats.FORMATS.keys()
    assert all(row["recall"] > 0.9 for by_reader in result["made"].values() for row in by_reader.values())
    assert result["encodings"]["parquetry"]["of"] == len(encoded_texts())


@pytest.mark.slow
def test_a_peer_that_cannot_be_started_ends_the_benchmark_with_its_message(tmp_path):
    with pytest.raises(SystemExit, match=r"No module named 'markitdown'"):
        formats.main(["--documents", "1", "--markitdown-python", sys.executable, "--results", str(tmp_path)])
