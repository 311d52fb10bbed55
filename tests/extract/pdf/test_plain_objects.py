"""Dictionaries parsed by tokens are those that pypdf reads; what pypdf repairs is left to it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader
from pypdf.errors import PyPdfError
from pypdf.generic import IndirectObject, read_object

from parquetry.extract.pdf.plain_objects import plain_dictionary, plain_object
from tests.files.pdf_writer import write_pdf

READER = PdfReader(BytesIO(write_pdf([b""])))

_NAMES = st.sampled_from(["/Type", "/A1", "/F+x.y", "/#41", "/", "/\u00e9", "/a'b"])
_NUMBERS = ("0", "-7", "+7", "1.5", "-.5", "4.", "--3", "1e5", "123456789012345678", "12 0 R", "12  0 R", "1 0 Rx")
_WORDS = ("true", "false", "null", "nullx", "(text)", "<2f>", "% note\n", "R", "endobj", "\x0b")
_PLAIN = st.sampled_from([*_NUMBERS, *_WORDS])
_SPACES = st.sampled_from([" ", "", "\n", "\r\n", "\0", "\t"])


def _joined(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(strategy, _SPACES), max_size=5).map(lambda parts: "".join(map("".join, parts)))


_VALUES = st.recursive(
    st.one_of(_NAMES, _PLAIN),
    lambda inner: st.one_of(_joined(inner).map("[{}]".format), _joined(inner).map("<<{}>>".format)),
    max_leaves=12,
)
_ENTRIES = st.lists(st.tuples(_NAMES, _SPACES, _VALUES, _SPACES).map("".join), max_size=6)
_DICTIONARIES = st.tuples(_ENTRIES.map("".join), st.sampled_from(["", " endobj", "\nstream\n", " /Next"])).map(
    lambda parts: f"<<{parts[0]}>>{parts[1]}"
)


def with_types(value: Any) -> Any:
    """A value in a form that compares with the types of all that it holds."""
    if isinstance(value, dict):
        return type(value), [(with_types(key), with_types(value.raw_get(key))) for key in value]
    if isinstance(value, list):
        return type(value), [with_types(list.__getitem__(value, place)) for place in range(len(value))]
    return type(value), repr(value)


@given(_DICTIONARIES)
def test_a_dictionary_parsed_by_tokens_is_the_one_that_pypdf_reads(text: str):
    data = text.encode("latin-1")
    found = plain_dictionary(data, 0, READER)
    if found is not None:
        try:
            expected = read_object(BytesIO(data), READER)
        except (PyPdfError, ValueError) as error:
            pytest.fail(f"pypdf refuses {data!r}: {error}")
        assert with_types(found) == with_types(expected)


def test_the_dictionary_of_a_page_is_parsed_by_tokens():
    page = (
        b"  << /Type /Page /Parent 3 0 R /MediaBox [0 0 612 792.5] /Resources << /Font << /F0 4 0 R>>>>/K null>> endobj"
    )
    found = plain_dictionary(page, 0, READER)
    assert with_types(found) == with_types(read_object(BytesIO(page.lstrip()), READER))
    assert found is not None
    assert found.raw_get("/Parent") == IndirectObject(3, 0, READER)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"12", b"[ 1 ]", b"<< /A 1", b"<< /A >>", b"<< 1 2 >>", b"<< /A 1 /A 2 >>", b"<< /A [ >> ]", b">>"),
        *(b"<< /A (text) >>", b"<< /A\x00 1 >>", b"<< /A 1 >> stream", b"<< /A 1 >> % end"),
        b"<< /A " + b"[" * 60 + b"]" * 60 + b" >>",
    ],
)
def test_what_is_no_plain_dictionary_is_left_to_pypdf(data: bytes):
    assert plain_dictionary(data, 0, READER) is None


_LENGTHS = st.sampled_from(["/Length 5", "/Length 4", "/Length 99", "/Length -1", "/Length 12 0 R", "/Length 5.0", ""])
_FILTERS = st.sampled_from(["", "/Filter /FlateDecode", "/Filter [/A /B]"])
_STARTS = st.sampled_from(["\nstream\n", " stream\r\n", "stream\r", "\nstream \n", "\nstrea\n", "\0stream\n"])
_CONTENTS = st.sampled_from(["12345", "1234\n", "", "12345678"])
_ENDS = st.sampled_from(["\nendstream\nendobj\n", "endstream endobj", "\r\nendstrea", "\n% note\nendstream", "\n"])


@given(st.tuples(_LENGTHS, _FILTERS, _STARTS, _CONTENTS, _ENDS))
def test_a_stream_read_at_once_is_the_one_that_pypdf_reads(parts: tuple[str, str, str, str, str]):
    length, filters, start, content, end = parts
    data = f"<<{length}{filters}>>{start}{content}{end}".encode("latin-1")
    found = plain_object(data, 0, READER)
    if found is not None:
        expected = read_object(BytesIO(data), READER)
        assert with_types(found) == with_types(expected)
        assert getattr(found, "_data", None) == getattr(expected, "_data", None)


def test_a_stream_whose_length_is_right_is_read_at_once():
    data = b"<< /Filter /FlateDecode /Length 5 >>\nstream\n12345\nendstream\nendobj"
    found = plain_object(data, 0, READER)
    assert found is not None
    assert found._data == b"12345"


def test_an_array_of_whole_numbers_has_no_longer_numbers_than_others():
    """pypdf decides what becomes of a number of more digits than an index may have."""
    assert plain_dictionary(b"<< /W [1 20 300] >>", 0, READER) == {"/W": [1, 20, 300]}
    assert plain_dictionary(b"<< /W [1 1234567890123456] >>", 0, READER) is None
