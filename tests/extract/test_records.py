"""JSON in every shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.records import RecordsExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(content: str | bytes, media_type: str = "application/json") -> Extraction:
    content = content.encode() if isinstance(content, str) else content
    return RecordsExtractor().extract(RawDocument(content, "data.json"), media_type, ExtractionSettings())


def test_nested_values_stand_beside_their_paths() -> None:
    extraction = read('{"title": "Pumps", "spec": {"bar": 1.50, "tags": ["a", "b"], "parts": [{"id": {"n": 1}}]}}')
    assert extraction.text.split("\n") == [
        "title: Pumps",
        "spec.bar: 1.50",
        "spec.tags: a, b",
        "spec.parts[0].id.n: 1",
    ]
    assert extraction.title == "Pumps"


def test_flat_objects_are_a_table() -> None:
    extraction = read('[{"sku": "A1", "price": 12.50, "ok": true}, {"sku": "B2", "price": null, "new": 1, "ok": 0}]')
    assert extraction.text == (
        "| sku | price | ok | new |\n| --- | --- | --- | --- |\n| A1 | 12.50 | true |  |\n| B2 |  | 0 | 1 |"
    )


def test_records_of_a_log_have_no_colours() -> None:
    lines = [
        {"log": "\x1b[31mERROR\x1b[0m disk oak full", "stream": "stderr"},
        {"log": "\x1b[1mdone", "stream": "stdout"},
    ]
    table = "| log | stream |\n| --- | --- |\n| ERROR disk oak full | stderr |\n| done | stdout |"
    assert read("\n".join(map(json.dumps, lines)), "application/jsonl").text == table
    assert read(json.dumps(lines[0])).text == "log: ERROR disk oak full\nstream: stderr"


def test_long_text_is_kept_whole_with_its_paragraphs() -> None:
    body = "First paragraph.\n\nSecond paragraph. " + "More. " * 100
    extraction = read(json.dumps({"id": 1, "body": body}))
    assert f"body:\n{body.strip()}" in extraction.text


def test_numbers_of_any_length_and_repeated_keys_are_kept() -> None:
    digits = "1" + "0" * 6000
    text = read(f'{{"n": {digits}, "e": 1e400, "x": NaN, "k": 1, "k": 2}}').text
    assert f"n:\n{digits}\n" in text
    assert "e: 1e400\nx: NaN\nk: 1\nk: 2" in text


@pytest.mark.parametrize("content", ["[1,", '{"a": 1,}', "[1 2]", '{"a": "b', "\x00\x01", "{'a': 1}"])
def test_what_is_not_json_is_damaged(content: str) -> None:
    with pytest.raises(BrokenDocument) as caught:
        read(content)
    assert caught.value.reason == "damaged"


def test_the_place_of_a_mistake_is_told() -> None:
    with pytest.raises(BrokenDocument) as caught:
        read('{"a": 1,\n "b": }')
    assert "line 2, column 7" in caught.value.detail


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_deep_nesting_is_refused_without_a_crash(opening: str) -> None:
    with pytest.raises(BrokenDocument):
        read(opening * 100_000)


def test_reasonable_nesting_is_read() -> None:
    assert read("[" * 400 + '"deep"' + "]" * 400).text.endswith(": deep")


@pytest.mark.parametrize("content", ["{}", "[]", "null", '[{"a": null}]', '""'])
def test_data_without_values_is_skipped(content: str) -> None:
    with pytest.raises(SkippedDocument) as caught:
        read(content)
    assert caught.value.reason == "no-text"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_in_other_encodings_is_read(encoding: str) -> None:
    assert read('{"name": "Grüße aus Köln"}'.encode(encoding)).text == "name: Grüße aus Köln"


def test_lines_that_are_not_json_are_left_out_and_named() -> None:
    extraction = read('{"a": {"b": 1}}\nnot json\n\n{"a": {"b": 2}}\n{"a"', "application/jsonl")
    assert extraction.text == "[0].a.b: 1\n\n[1].a.b: 2"
    assert extraction.warnings == ("lines that are not JSON were left out, 2 of 4: 2, 5",)


def test_json_lines_under_the_name_of_json_are_read() -> None:
    assert read('{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n').text.endswith("| 1 | 2 |\n| 3 | 4 |")


def test_lines_of_which_none_is_json_are_damaged() -> None:
    with pytest.raises(BrokenDocument) as caught:
        read("no\nno\n", "application/jsonl")
    assert caught.value.reason == "damaged"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=["C"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=25,
)


def words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for inner in value.values() for word in words(inner)]
    if isinstance(value, list):
        return [word for inner in value for word in words(inner)]
    return value.split() if isinstance(value, str) and value.isalnum() and value.isascii() else []


@given(values)
def test_every_text_of_any_value_is_in_the_extraction(value: Any) -> None:
    try:
        text = read(json.dumps(value)).text
    except SkippedDocument:
        text = ""
    assert [word for word in words(value) if word not in text] == []
