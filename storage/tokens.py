"""The tokeniser of the keyword search: one SQL macro, the same for texts and queries, in every DuckDB.

Words are runs of letters and digits, lower-cased, accents folded. Identifiers are there twice: their parts, and whole
(`sr-2023-052`, `--dry-run`, `snake_case`), because people search for both. Text that is written without spaces
(Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) becomes pairs of neighbouring characters.
"""

from __future__ import annotations

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々"
_WORD = rf"(?:[^\P{{L}}{_UNSPACED}]|\p{{N}})+"
_COMPOUND = r"[\p{L}\p{N}]+(?:[-_.:@+#/][\p{L}\p{N}]+)+"
_IDENTIFIER = r"[\p{N}_@.]"
"""what makes a compound an identifier, a number or a path of names; `boundary-layer` is two words and nothing else"""
_FLAG = r"(?:^|[\s\x22\x27\x60(\[])(--[\p{L}\p{N}]+(?:[-_][\p{L}\p{N}]+)*)"
LONGEST_TOKEN = 64
"""characters; a longer run of letters is no word that anybody types"""

MACROS = (
    f"""CREATE OR REPLACE MACRO tokens_plain(folded) AS list_concat(
    list_filter(regexp_extract_all(folded, '{_WORD}'), lambda t: length(t) <= {LONGEST_TOKEN}),
    list_concat(
        list_filter(regexp_extract_all(folded, '{_COMPOUND}'),
            lambda t: length(t) <= {LONGEST_TOKEN} AND regexp_matches(t, '{_IDENTIFIER}')),
        regexp_extract_all(folded, '{_FLAG}', 1)))""",
    f"""CREATE OR REPLACE MACRO tokens_unspaced(content) AS flatten(list_transform(
    regexp_extract_all(content, '[{_UNSPACED}]+'), lambda r: list_transform(
        range(1, greatest(2, length(r))), lambda i: substring(r, i::INTEGER, 2))))""",
    # Text of ASCII only, which most is, has nothing to fold.
    """CREATE OR REPLACE MACRO tokens(content) AS CASE WHEN strlen(content) = length(content)
    THEN tokens_plain(lower(content))
    ELSE list_concat(tokens_plain(lower(strip_accents(content))), tokens_unspaced(content)) END""",
)
"""SQL that makes `tokens(text) -> VARCHAR[]`: the tokens of a text in order of kind, repeated as often as they stand"""

CHUNK_TOKENS = """tokens(concat_ws(' ', list_aggregate(
    list_filter(coalesce(headings, []), lambda h: NOT contains(text, h)), 'string_agg', ' '), text))"""
"""tokens of a chunk: its text, and of the headings above it those that the text does not repeat"""
