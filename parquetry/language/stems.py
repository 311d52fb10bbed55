"""Stems of words and stop words, by language."""

from __future__ import annotations

import difflib
import functools
import re
import threading
import unicodedata
from collections.abc import Callable, Sequence

from parquetry.errors import SettingsError
from parquetry.language.stop_words import STOP_WORDS

NO_LANGUAGE = "none"
"""language that leaves words unchanged and has no stop words"""

Stem = Callable[[Sequence[str]], list[str]]
"""words -> their stems, in the same order"""


def languages() -> list[str]:
    """Return the names that `stemmer` accepts: Snowball's languages, and `none`."""
    import Stemmer

    return [*Stemmer.algorithms(), NO_LANGUAGE]


@functools.cache
def stemmer(language: str) -> Stem:
    """Return a function that reduces the words of a language to their stems. Thread-safe.

    Args:
        language: one of `languages()`.

    Returns:
        A function from words, lower-cased and without accents as returned by `fold`, to stems.

    Raises:
        SettingsError: there is no such language.

    Source: https://snowballstem.org
    """
    _check(language)
    if language == NO_LANGUAGE:
        return list
    import Stemmer

    # Its cache pays off for running text; an index stems every word once.
    snowball = Stemmer.Stemmer(language, 0)
    endings = _WRITTEN.get(language, ())
    lock = threading.Lock()

    def stem(words: Sequence[str]) -> list[str]:
        # A stemmer has one buffer.
        with lock:
            stems: list[str] = snowball.stemWords(list(_restored(words, endings)))
            return stems

    return stem


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return the words of a language that say nothing about a text's subject, question words included.

    Args:
        language: one of `languages()`.

    Returns:
        Words lower-cased and without accents, not stemmed; none for a language without a list.

    Raises:
        SettingsError: there is no such language.
    """
    _check(language)
    return frozenset(fold(STOP_WORDS.get(language, "")).split())


def fold(text: str) -> str:
    """Return text in lower case without accents: decomposed, with all marks dropped."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(each for each in decomposed if not unicodedata.category(each).startswith("M"))


def _check(language: str) -> None:
    known = languages()
    if language in known:
        return
    near = difflib.get_close_matches(language.lower(), known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"choose one of: {', '.join(known)}"
    raise SettingsError(f"search.language is {language!r}, which is not a language of the stemmer; {hint}")


def _restored(words: Sequence[str], endings: Sequence[tuple[re.Pattern[str], str]]) -> Sequence[str]:
    for folded, written in endings:
        words = [folded.sub(written, word) for word in words]
    return words


_WRITTEN: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "french": ((re.compile("ee(s?)$"), r"ée\1"),),
    "portuguese": (
        (re.compile("cao$"), "ção"),
        (re.compile("coes$"), "ções"),
        (re.compile("encia(s?)$"), r"ência\1"),
        (re.compile("avel$"), "ável"),
        (re.compile("ivel$"), "ível"),
    ),
    "russian": ((re.compile("(?<=[аеиоуыэюя])и$"), "й"),),
}
"""language -> folded and written form of the endings that Snowball's rules recognise only with accents, and that mean
the same without"""
