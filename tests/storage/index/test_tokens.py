"""The tokeniser: the same tokens for texts and queries, words and identifiers, with and without spaces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.storage.database import open_duckdb
from parquetry.storage.index.tokens import CHUNK_TOKENS, LONGEST_TOKEN, MACROS, tokenised
from parquetry.storage.index.words import stems_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def duck():
    with open_duckdb() as connection:
        for macro in MACROS:
            connection.execute(macro)
        yield connection


def tokens(duck, text):
    return duck.execute("SELECT tokens($1)", [text]).fetchall()[0][0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("?!,. -- _", []),
        ("Oak, oak!", ["oak", "oak"]),
        ("Café naïve ÖL", ["cafe", "naive", "ol"]),
        ("don't", ["don", "t"]),
        ("SR-2023-052", ["sr", "2023", "052", "sr-2023-052"]),
        ("use --dry-run now", ["use", "dry", "run", "now", "--dry-run"]),
        ("airfoil--the", ["airfoil", "the"]),
        ("snake_case_name", ["snake", "case", "name", "snake_case_name"]),
        ("os.path.join", ["os", "path", "join", "os.path.join"]),
        ("v1.2.3 costs 3.14", ["v1", "2", "3", "costs", "3", "14", "v", "1", "v1.2.3", "3.14"]),
        ("ada@example.org", ["ada", "example", "org", "ada@example.org"]),
        ("boundary-layer", ["boundary", "layer"]),
        ("and/or", ["and", "or"]),
        ("漢字かな", ["漢字", "字か", "かな"]),
        ("東", ["東"]),
        ("abc漢字x1", ["abc", "x1", "x", "1", "漢字"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("한국어", ["한국", "국어"]),
        ("Größe ٣٤", ["große", "٣٤"]),
        ("x" * (LONGEST_TOKEN + 1), []),
        ("FY2017", ["fy2017", "fy", "2017"]),
        ("Q3 of a 10K", ["q3", "of", "a", "10k", "q", "3", "10", "k"]),
        ("Größe٣٤ 12m²", ["große٣٤", "12m²", "große", "٣٤", "12", "m", "²"]),
        ("1a2b is short", ["1a2b", "is", "short", "1", "a", "2", "b"]),
        ("3f2a9b0c", ["3f2a9b0c"]),
        ("x1" + "y" * LONGEST_TOKEN, []),
    ],
)
def test_tokens_of_a_text(duck, text, expected):
    assert tokens(duck, text) == expected


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200))
def test_text_and_query_of_the_same_words_have_the_same_tokens(duck, text):
    """As a chunk and as a query, alone and next to other text."""
    alone = tokens(duck, text)
    as_chunk = duck.execute(
        f"SELECT {CHUNK_TOKENS} FROM (SELECT $1 AS text, NULL::VARCHAR[] AS headings)", [text]
    ).fetchall()[0][0]
    assert as_chunk == alone
    assert sorted(tokens(duck, f"{text} § {text}")) == sorted([*alone, *alone])


@settings(deadline=None, max_examples=60)
@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_short_way_for_ascii_gives_the_same_tokens(duck, text):
    unicode = duck.execute("SELECT tokens_unicode(lower($1))", [text]).fetchall()[0][0]
    assert tokens(duck, text) == unicode


@settings(deadline=None, max_examples=40)
@given(st.lists(st.one_of(st.text(max_size=40), st.text(st.characters(max_codepoint=127), max_size=40)), max_size=8))
def test_many_texts_at_once_have_the_same_tokens(duck, texts):
    contents = "(SELECT unnest(range(len($1::VARCHAR[]))) AS number, unnest($1::VARCHAR[]) AS content)"
    found = duck.execute(f"FROM ({tokenised(contents)}) ORDER BY number", [texts]).fetchall()
    assert found == [(number, tokens(duck, text)) for number, text in enumerate(texts)]


def test_headings_count_unless_the_text_repeats_them(duck):
    sql = f"SELECT {CHUNK_TOKENS} FROM (SELECT 'Leave is paid' AS text, ['Handbook', 'Leave'] AS headings)"
    assert duck.execute(sql).fetchall()[0][0] == ["handbook", "leave", "is", "paid"]


@pytest.mark.parametrize(
    ("language", "words", "stems"),
    [
        ("english", ["running", "runs", "sr-2023-052", "v1", "2031"], ["run", "run", "sr-2023-052", "v1", "2031"]),
        ("german", ["tischen", "tisch"], ["tisch", "tisch"]),
        ("none", ["running"], ["running"]),
    ],
)
def test_words_are_stemmed_and_identifiers_are_not(language, words, stems):
    assert stems_of(words, language) == stems
