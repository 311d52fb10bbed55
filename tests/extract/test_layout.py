"""Divided words are found at their marks; normalised text needs no further pass."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.extract.builder import normalise
from parquetry.extract.layout import _DIVIDED, HYPHEN_MARK, _with_divided


@given(st.text(alphabet=f"aé9_-. \n{HYPHEN_MARK}", max_size=30))
def test_divided_words_are_those_that_the_pattern_finds_anywhere(text: str):
    assert _with_divided(text, lambda match: f"[{match[0]}]") == _DIVIDED.sub(lambda match: f"[{match[0]}]", text)


@pytest.mark.slow
def test_every_character_that_is_normalised_is_so_within_text():
    """Text without any character to be replaced is passed on as it is, so none may be missing from the list of them."""
    removed = {*map(chr, (*range(9), *range(0xE, 0x20), *range(0x7F, 0xA0), 0xAD, 0xFEFF, 0xFFFE, 0xFFFF))} - {"\x85"}
    lines = dict.fromkeys("\r\x0b\x0c\x85\u2028", "\n") | {"\u2029": "\n\n"}
    expected = dict.fromkeys(removed, "") | lines | {chr(code): "\ufffd" for code in range(0xD800, 0xE000)}
    changed = {c: text[1:-1] for c in map(chr, range(sys.maxunicode + 1)) if (text := normalise(f"a{c}b")) != f"a{c}b"}
    ligatures = {c: changed.pop(c) for c in map(chr, range(0xFB00, 0xFB07))}
    assert "".join(ligatures.values()) == "fffiflffifflstst"
    assert {c: text for c, text in changed.items() if c in expected} == expected
    composed = [c for c in changed if c not in expected]
    assert all(normalise(f"a{c}b") == unicodedata.normalize("NFC", f"a{c}b") for c in composed)
