"""A query has the same tokens as a text of the index with the same words."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.storage.database import open_duckdb
from parquetry.storage.index.tokens import MACROS
from parquetry.storage.search.query_words import _ALIKE, _tokens, words_of

pytestmark = pytest.mark.slow

LETTERS = [chr(code) for code in range(0x600) if _ALIKE.fullmatch(chr(code))]


@pytest.fixture(scope="module")
def duck():
    with open_duckdb() as connection:
        for macro in MACROS:
            connection.execute(macro)
        yield connection


def in_the_index(duck, texts):
    found = duck.execute("SELECT tokens(text) FROM (SELECT unnest($1::VARCHAR[]) AS text)", [texts]).fetchall()
    return [Counter(tokens) for (tokens,) in found]


def test_every_letter_that_needs_no_statement_has_the_tokens_of_the_index(duck):
    forms = ("{0}", "a{0}b", "{0}{0} 9{0}-1", "A{0}\u0301 E.{0}", "--fl{0}g_x --{0}", "a/{0} {0}-b", "ab{0}12 9{0}")
    texts = [form.format(letter) for letter in LETTERS for form in forms]
    assert len(LETTERS) == 0x370 + 0x130
    for text, expected in zip(texts, in_the_index(duck, texts), strict=True):
        # Without a connection: no statement.
        assert Counter(_tokens(None, text)) == expected, ascii(text)


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from(LETTERS) | st.sampled_from("abé19²-_.:@+#/ \t'\u0301"), max_size=60))
def test_any_text_of_such_letters_has_the_tokens_of_the_index(duck, text):
    (expected,) = in_the_index(duck, [text])
    assert Counter(_tokens(None, text)) == expected


@pytest.mark.parametrize("text", ["ΣΑΣ", "漢字かな", "Größe ٣٤", "한국어", "สวัสดี 9", "a漢9-1", "FY٣٤"])
def test_other_letters_are_found_by_the_index_itself(duck, text):
    (expected,) = in_the_index(duck, [text])
    assert Counter(_tokens(duck, text)) == expected
    assert not _ALIKE.fullmatch(text)


def test_words_that_are_left_out_are_named():
    asked = words_of(None, "english", "Where is the oak table", None)
    assert asked.own.keys() == {"oak", "tabl"}
    assert set(asked.ignored) == {"where", "is", "the"}
