"""Delimited tables in the dialects that programs write."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.errors import SkippedDocument
from parquetry.extract.delimited import DelimitedExtractor, read_rows
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(content: str | bytes, media_type: str = "text/csv") -> Extraction:
    content = content.encode() if isinstance(content, str) else content
    return DelimitedExtractor().extract(RawDocument(content, "data.csv"), media_type, ExtractionSettings())


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b,c\n1,2,3\n", [["a", "b", "c"], ["1", "2", "3"]]),
        ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
        ("a,b\r1,2\r", [["a", "b"], ["1", "2"]]),
        ("a;b\n1,5;2,5\n3,5;4,5\n", [["a", "b"], ["1,5", "2,5"], ["3,5", "4,5"]]),
        ("a\tb\n1,5\t2\n3\t4,5\n", [["a", "b"], ["1,5", "2"], ["3", "4,5"]]),
        ("a|b\n1|2\n", [["a", "b"], ["1", "2"]]),
        ("sep=;\na;b\n1;2\n", [["a", "b"], ["1", "2"]]),
        ('first,last\nJohn,"Doe, Jr."\n', [["first", "last"], ["John", "Doe, Jr."]]),
        ('a,b\n1,"ha ""ha"" ha"\n', [["a", "b"], ["1", 'ha "ha" ha']]),
        ('a,b\n1,"ha \\"ha\\" ha"\n2,x\n', [["a", "b"], ["1", 'ha "ha" ha'], ["2", "x"]]),
        ('a,b\n"Once upon \na time",5\n7,8\n', [["a", "b"], ["Once upon \na time", "5"], ["7", "8"]]),
        (
            'k,v\n1,"{""type"": ""Point"", ""at"": [1.5, 2]}"\n',
            [["k", "v"], ["1", '{"type": "Point", "at": [1.5, 2]}']],
        ),
        ('a,b\n1,""\n"",2\n', [["a", "b"], ["1", ""], ["", "2"]]),
        ('"lat","long"\n"1.5","2.5"\n', [["lat", "long"], ["1.5", "2.5"]]),
        ("only\none\ncolumn\n", [["only"], ["one"], ["column"]]),
        ("a,b\n1,x\u2028y\n", [["a", "b"], ["1", "x\u2028y"]]),
    ],
)
def test_a_dialect_is_told_by_its_rows(text: str, rows: list[list[str]]) -> None:
    assert read_rows(text) == (rows, [])


def test_a_quotation_mark_that_is_never_closed_does_not_swallow_the_file() -> None:
    text = 'size,name\n5,"inch\n' + "".join(f"{n},thing {n}\n" for n in range(500))
    rows, warnings = read_rows(text)
    assert len(rows) == 502
    assert rows[1] == ["5", '"inch']
    assert warnings == ["a quotation mark is never closed: quotation marks were read as text"]


def test_the_names_of_the_columns_stand_over_every_block() -> None:
    extraction = read("id,name\n" + "".join(f"{n},item number {n}\n" for n in range(200)))
    blocks = extraction.text.split("\n\n")
    assert len(blocks) > 3
    assert all(block.startswith("| id | name |\n| --- | --- |\n") for block in blocks)
    assert sum(block.count("item number") for block in blocks) == 200
    assert extraction.parts[0].format == "table"
    assert extraction.metadata["rows"] == 201


def test_rows_of_values_have_no_header() -> None:
    assert read("1,2\n3,4\n").text == "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"


@pytest.mark.parametrize(
    "names", ["part,2023,2024", ",2023,2024", "part,2023-11,2023-12", "part,2024-05-01,2024-05-02"]
)
def test_periods_over_values_name_their_columns(names: str) -> None:
    first = "| " + " | ".join(names.split(",")) + " |\n| --- | --- | --- |\n"
    assert read(f"{names}\nhook,7,1377\nrope,98,5\n").text.startswith(first)


def test_years_over_years_are_values() -> None:
    assert read("Ulm,2021\nBonn,2022\nKiel,2023\n").text.startswith("|  |  |\n")


def test_a_title_above_the_table_is_text() -> None:
    extraction = read("Stanley cups,,\nTeam,City,Cups\nBlues,STL,1\nFlyers,PHI,2\n")
    assert extraction.text.startswith("Stanley cups\n\n| Team | City | Cups |\n")


def test_rows_longer_than_a_chunk_are_written_by_name() -> None:
    extraction = read("title,plot\n" + "".join(f'Film {n},"{"It goes on. " * 150}"\n' for n in range(3)))
    assert extraction.text.startswith("title: Film 0\nplot: It goes on.")
    assert extraction.parts[0].format == "text"


def test_tabs_are_preferred_where_the_name_says_so() -> None:
    assert "| a,b | c |" in read("a,b\tc\n1,2\t3\n", "text/tab-separated-values").text


def test_shift_jis_is_read() -> None:
    extraction = read("名前,年齢\n佐藤太郎,30\n三木英子,25\n".encode("cp932"))
    assert "| 佐藤太郎 | 30 |" in extraction.text


def test_a_table_without_text_is_skipped() -> None:
    with pytest.raises(SkippedDocument) as caught:
        read(",,\n , ,\n")
    assert caught.value.reason == "no-text"


cells = st.text(alphabet=st.sampled_from('ab1 ,;"\n|é'), max_size=8)


@given(st.integers(2, 5).flatmap(lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=3)))
def test_no_word_of_any_table_is_lost(rows: list[list[str]]) -> None:
    target = io.StringIO(newline="")
    csv.writer(target).writerows(rows)
    read_back, _ = read_rows(target.getvalue())
    letters = "".join(sorted(sign for row in rows for cell in row for sign in cell if sign.isalnum()))
    assert "".join(sorted(sign for row in read_back for cell in row for sign in cell if sign.isalnum())) == letters
