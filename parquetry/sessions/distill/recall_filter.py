"""Texts recalled into a session from the knowledge base: they are known, and must not be distilled again.

Otherwise one mistake that a search brings up is distilled again from every session in which it is shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from parquetry.language.stop_words import STOP_WORDS
from parquetry.sessions.cue_words import NEGATING_CHARACTERS, NEGATIONS
from parquetry.sessions.model import Message

COPIED = 0.55
"""Share of a statement's pairs of neighbouring words from which it counts as a copy.

Source: measured on 2,000 sentences of the PERSPECTRUM pool and its 25,528 pairs of paraphrases. At this share, and
without an added content word, a copy with other capitals, without an article, without one of its words, or after "the
user said that" is recognised in 100 %; paraphrases by people in 1.2 %; copies with one word replaced, as a correction
does, in 0.3 %."""
_OURS = re.compile(
    r"(?i)\bentry:[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{12}-chunk-\d+|[\"']chunk_id[\"']\s*:"
    r"|\bparquetry[ _./:-]*(?:search|entries|ask)\b"
)
"""ids and commands of this system in the result of a tool"""
_CALLED = re.compile(r"(?i)\bparquetry\b|_parquetry_|parquetry__")
_ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrtbf\"/\\])")
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:['\u2019.,-]\w+)*"
)
"""a word, with its inner dots and dashes; or one letter of a script written without spaces"""
_REPORTING = "user known noted said says told mentioned according remember recalled note summary know knows learned"
_FREE = frozenset(" ".join([*STOP_WORDS.values(), _REPORTING]).split())
"""words that do not change a statement"""
_NEGATIONS = frozenset().union(*NEGATIONS.values(), NEGATING_CHARACTERS)


@dataclass(frozen=True, slots=True)
class Recalled:
    """Texts recalled from the knowledge base."""

    texts: tuple[tuple[frozenset[str], frozenset[tuple[str, str]]], ...] = ()
    """words, and pairs of neighbouring words, of each text"""

    def copied(self, statement: str) -> bool:
        """Return True if a statement repeats one of the texts nearly word by word.

        An added content word, above all a number or a negation, makes it a different statement: the session may have
        corrected what was recalled.
        """
        said = words(statement)
        pairs = set(pairwise(said))
        telling = {word for word in said if _is_telling(word)}
        return any(
            telling <= known and pairs and len(pairs & known_pairs) >= COPIED * len(pairs)
            for known, known_pairs in self.texts
        )


def recalled_texts(messages: Sequence[Message]) -> Recalled:
    """Find the texts that a session was shown from the knowledge base, in tool results and system messages.

    Args:
        messages: of the whole session: a text recalled at its beginning may be repeated at its end.
    """
    texts = []
    ours = False
    for message in messages:
        if message.kind == "tool_call":
            ours = _CALLED.search(message.tool or "") is not None or _CALLED.search(message.text) is not None
        elif message.kind == "tool_result" or message.role == "system":
            named = message.kind == "tool_result" and (ours or _CALLED.search(message.tool or "") is not None)
            if named or _OURS.search(message.text):
                texts.append(message.text)
    return Recalled(tuple(map(_indexed, texts)))


def words(text: str) -> list[str]:
    """Return words in lower case, in NFKC."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _is_telling(word: str) -> bool:
    if word in _NEGATIONS or word.endswith(("n't", "n\u2019t")):
        return True
    return word not in _FREE


def _indexed(text: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    said = words(_ESCAPED.sub(_unescaped, text))
    return frozenset(said), frozenset(pairwise(said))


def _unescaped(match: re.Match[str]) -> str:
    """Unescape an escaped character: JSON is often nested in JSON, or truncated, so that it cannot be parsed."""
    escaped = match[0]
    return chr(int(escaped[2:], 16)) if escaped[1] == "u" else " "
