"""The tokeniser of the keyword search: one SQL macro for texts and queries, the same in every DuckDB.

Words are runs of letters and digits, lower-cased, accents folded. Identifiers produce two kinds of tokens, their parts
and the whole (`sr-2023-052`, `--dry-run`, `snake_case`), because people search for both; so do words in which letters
meet digits (`FY2017`, `Q3`). Text that is written without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese)
becomes pairs of neighbouring characters.
"""

from __future__ import annotations

LONGEST_TOKEN = 64
"""characters; a longer run of letters is not a word that people type"""
MOST_PARTS = 4
"""parts into which a word of letters and digits is split; one of more parts (`3f2a9b0c`) is a code, found as a whole"""
IS_ASCII = "strlen({0}) = length({0})"
"""SQL condition: every character takes one byte"""
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々"
_BEFORE_FLAG = r"(?:^|[\s\x22\x27\x60(\[])"


def _macro(name: str, character: str, letter: str, digit: str) -> str:
    """Return SQL of a macro that finds words and identifiers.

    Args:
        name: name of the macro.
        character: class of the characters that identifiers are made of, without brackets.
        letter: class of the letters of words, with brackets.
        digit: class of digits, without brackets.
    """
    word, number = rf"(?:{letter}|[{digit}])", f"[{digit}]"
    mixed = rf"{letter}+{number}{word}*|{number}+{letter}{word}*"
    compound = rf"[{character}]+(?:[-_.:@+#/][{character}]+)+"
    # `boundary-layer` is two words only; a digit, underscore, dot or at sign makes an identifier.
    identifier = rf"[{digit}_@.]"
    flag = rf"{_BEFORE_FLAG}(--[{character}]+(?:[-_][{character}]+)*)"
    return f"""CREATE OR REPLACE MACRO {name}(folded) AS list_concat(
    list_filter(regexp_extract_all(folded, '{word}+'), lambda t: length(t) <= {LONGEST_TOKEN}),
    flatten(list_filter(
        list_transform(
            list_filter(regexp_extract_all(folded, '{mixed}'), lambda t: length(t) <= {LONGEST_TOKEN}),
            lambda t: regexp_extract_all(t, '{letter}+|{number}+')),
        lambda parts: len(parts) <= {MOST_PARTS})),
    list_concat(
        list_filter(regexp_extract_all(folded, '{compound}'),
            lambda t: length(t) <= {LONGEST_TOKEN} AND regexp_matches(t, '{identifier}')),
        regexp_extract_all(folded, '{flag}', 1)))"""


MACROS = (
    _macro("tokens_ascii", "a-z0-9", "[a-z]", "0-9"),
    _macro("tokens_unicode", r"\p{L}\p{N}", rf"[^\P{{L}}{_UNSPACED}]", r"\p{N}"),
    f"""CREATE OR REPLACE MACRO tokens_unspaced(content) AS flatten(list_transform(
    regexp_extract_all(content, '[{_UNSPACED}]+'), lambda r: list_transform(
        range(1, greatest(2, length(r))), lambda i: substring(r, i::INTEGER, 2))))""",
    # Folding stops at a NUL.
    """CREATE OR REPLACE MACRO tokens_other(content) AS list_concat(
    tokens_unicode(lower(strip_accents(replace(content, chr(0), ' ')))), tokens_unspaced(content))""",
    # ASCII text, which is the most common, needs no folding and none of Unicode's classes.
    f"""CREATE OR REPLACE MACRO tokens(content) AS CASE WHEN {IS_ASCII.format("content")}
    THEN tokens_ascii(lower(content)) ELSE tokens_other(content) END""",
)
"""SQL that creates `tokens(text) -> VARCHAR[]`: the tokens of a text grouped by kind, repeated as often as they
occur"""


CHUNK_CONTENT = """concat_ws(' ', list_aggregate(
    list_filter(coalesce(headings, []), lambda h: NOT contains(text, h)), 'string_agg', ' '), text)"""
"""SQL of the tokenised content of a chunk: its text, and the headings above it that the text does not repeat"""
CHUNK_TOKENS = f"tokens({CHUNK_CONTENT})"
CHUNK_HEADINGS = "array_to_string(coalesce(headings, []), ' ')"
"""SQL of the headings above a chunk"""
HEADING_EXTRA = 2
"""times that each word of the headings above a chunk counts besides: BM25F with two fields, of which the length of one
alone is normalised (docs/decisions/0060-words-of-headings.md)"""


def tokenised(contents: str) -> str:
    """Return SQL that replaces `content` by its `tokens`, as `tokens(content)` computes them.

    Two statements instead of a CASE, of which DuckDB computes both sides for all rows.

    Args:
        contents: relation with a column `content`.
    """
    ascii_only = IS_ASCII.format("content")
    return f"""SELECT * EXCLUDE (content), tokens_ascii(lower(content)) AS tokens FROM {contents} WHERE {ascii_only}
    UNION ALL SELECT * EXCLUDE (content), tokens_other(content) AS tokens FROM {contents} WHERE NOT {ascii_only}"""
