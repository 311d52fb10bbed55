"""The tokeniser of the keyword search: one SQL macro, the same for texts and queries, in every DuckDB.

Words are runs of letters and digits, lower-cased, accents folded. Identifiers are there twice: their parts, and whole
(`sr-2023-052`, `--dry-run`, `snake_case`), because people search for both. Text that is written without spaces
(Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) becomes pairs of neighbouring characters.
"""

from __future__ import annotations

LONGEST_TOKEN = 64
"""characters; a longer run of letters is no word that anybody types"""
IS_ASCII = "strlen({0}) = length({0})"
"""SQL: no character takes more than a byte"""
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々"
_BEFORE_FLAG = r"(?:^|[\s\x22\x27\x60(\[])"


def _macro(name: str, character: str, word: str, digit: str) -> str:
    """A macro that finds words and identifiers.

    Args:
        name: of the macro.
        character: class of the characters that identifiers are made of, without brackets.
        word: pattern of a word.
        digit: class of digits, without brackets.
    """
    compound = rf"[{character}]+(?:[-_.:@+#/][{character}]+)+"
    # `boundary-layer` is two words and nothing else; a digit, underscore, dot or at sign makes an identifier.
    identifier = rf"[{digit}_@.]"
    flag = rf"{_BEFORE_FLAG}(--[{character}]+(?:[-_][{character}]+)*)"
    return f"""CREATE OR REPLACE MACRO {name}(folded) AS list_concat(
    list_filter(regexp_extract_all(folded, '{word}'), lambda t: length(t) <= {LONGEST_TOKEN}),
    list_concat(
        list_filter(regexp_extract_all(folded, '{compound}'),
            lambda t: length(t) <= {LONGEST_TOKEN} AND regexp_matches(t, '{identifier}')),
        regexp_extract_all(folded, '{flag}', 1)))"""


MACROS = (
    _macro("tokens_ascii", "a-z0-9", "[a-z0-9]+", "0-9"),
    _macro("tokens_unicode", r"\p{L}\p{N}", rf"(?:[^\P{{L}}{_UNSPACED}]|\p{{N}})+", r"\p{N}"),
    f"""CREATE OR REPLACE MACRO tokens_unspaced(content) AS flatten(list_transform(
    regexp_extract_all(content, '[{_UNSPACED}]+'), lambda r: list_transform(
        range(1, greatest(2, length(r))), lambda i: substring(r, i::INTEGER, 2))))""",
    # Folding ends at a NUL.
    """CREATE OR REPLACE MACRO tokens_other(content) AS list_concat(
    tokens_unicode(lower(strip_accents(replace(content, chr(0), ' ')))), tokens_unspaced(content))""",
    # Text of ASCII only, which most is, has nothing to fold and needs none of Unicode's classes.
    f"""CREATE OR REPLACE MACRO tokens(content) AS CASE WHEN {IS_ASCII.format("content")}
    THEN tokens_ascii(lower(content)) ELSE tokens_other(content) END""",
)
"""SQL that makes `tokens(text) -> VARCHAR[]`: the tokens of a text in order of kind, repeated as often as they stand"""


def query_tokens(query: str) -> str:
    """SQL that gives what `tokens($1)` gives for a query, without compiling Unicode's classes for one of ASCII."""
    return "tokens_ascii(lower($1))" if query.isascii() else "tokens($1)"


CHUNK_CONTENT = """concat_ws(' ', list_aggregate(
    list_filter(coalesce(headings, []), lambda h: NOT contains(text, h)), 'string_agg', ' '), text)"""
"""what is tokenised of a chunk: its text, and of the headings above it those that the text does not repeat"""
CHUNK_TOKENS = f"tokens({CHUNK_CONTENT})"


def tokenised(contents: str) -> str:
    """SQL of rows with their `tokens` instead of their `content`, as `tokens(content)` gives them.

    Two statements and no CASE, of which DuckDB computes both sides for all rows.

    Args:
        contents: relation with a column `content`.
    """
    ascii_only = IS_ASCII.format("content")
    return f"""SELECT * EXCLUDE (content), tokens_ascii(lower(content)) AS tokens FROM {contents} WHERE {ascii_only}
    UNION ALL SELECT * EXCLUDE (content), tokens_other(content) AS tokens FROM {contents} WHERE NOT {ascii_only}"""
