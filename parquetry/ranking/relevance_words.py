"""Words of a question in the texts that were found for it: counted as the search index counts them. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parquetry.language.stems import stemmer, stop_words
from parquetry.lazy_patterns import lazy_pattern

LONGEST_TOKEN = 64
"""characters; a longer run of letters is not a word that people type"""
MOST_PARTS = 4
"""parts into which a word of letters and digits is split"""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30ff"
    "\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""characters of the scripts that are written without spaces"""
_JOINT = re.compile("[-_.:@+#/]")
"""characters between the words of a compound"""
_FLAG = r"(?:^|[\s\x22\x27\x60(\[])"


@dataclass(frozen=True, slots=True)
class _Alphabet:
    """Patterns of the tokens of one alphabet."""

    word: re.Pattern[str]
    run: re.Pattern[str]
    """letters or digits of a word, up to where they meet"""
    compound: re.Pattern[str]
    identifier: re.Pattern[str]
    """occurs in a compound that is a name rather than two words"""
    flag: re.Pattern[str]

    def words(self, folded: str) -> list[str]:
        """Return words, then the parts of those in which letters meet digits."""
        found = [word for word in self.word.findall(folded) if len(word) <= LONGEST_TOKEN]
        mixed = (self.run.findall(word) for word in found if not (word.isalpha() or word.isdecimal()))
        return [*found, *(part for parts in mixed if 1 < len(parts) <= MOST_PARTS for part in parts)]

    def names(self, folded: str) -> Iterator[str]:
        """Yield identifiers and flags, whole."""
        for whole in self.compound.findall(folded):
            if len(whole) <= LONGEST_TOKEN and _JOINT.search(whole) and self.identifier.search(whole):
                yield whole
        yield from self.flag.findall(folded)


def _alphabet(character: str, word: str, digit: str) -> _Alphabet:
    return _Alphabet(
        lazy_pattern(word),
        lazy_pattern(rf"[{digit}]+|[^{digit}]+"),
        lazy_pattern(rf"{character}+(?:[-_.:@+#/]{character}+)*"),
        lazy_pattern(rf"[{digit}_@.]"),
        lazy_pattern(rf"{_FLAG}(--{character}+(?:[-_]{character}+)*)"),
    )


_ASCII = _alphabet("[a-z0-9]", "[a-z0-9]+", "0-9")
_DIGIT = r"\d\xb2\xb3\xb9\xbc-\xbe"
"""digits, and the superscripts and fractions among Latin letters, which are no digits for Python"""
_SPACED = _alphabet(r"[^\W_]", r"[^\W_]+", _DIGIT)
_MIXED = _alphabet(r"[^\W_]", rf"(?:(?![{_UNSPACED}])[^\W_])+", _DIGIT)
_RUNS = lazy_pattern(f"[{_UNSPACED}]+")
_LATIN_ACCENTS = lazy_pattern("[\u0300-\u036f]+")
_BEYOND_LATIN = lazy_pattern("[\u0370-\u1fff\u2c00-\U0010ffff]")


def tokens(content: str, *, names: bool = True) -> list[str]:
    """Return the tokens of a text, as the SQL macro `tokens` of the search index does.

    Args:
        content: any text.
        names: False to leave out whole identifiers, which take longer to find than all the rest.
    """
    if content.isascii():
        alphabet, folded, runs = _ASCII, content.lower(), []
    else:
        folded, runs = _fold(content), _RUNS.findall(content)
        alphabet = _MIXED if runs else _SPACED
    pairs = (run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1)))
    return [*alphabet.words(folded), *(alphabet.names(folded) if names else ()), *pairs]


def _fold(content: str) -> str:
    """Return text in lower case without accents."""
    plain = _LATIN_ACCENTS.sub("", unicodedata.normalize("NFD", content.replace("\0", " ")))
    if _BEYOND_LATIN.search(plain):
        plain = "".join(each for each in plain if not unicodedata.category(each).startswith("M"))
    return unicodedata.normalize("NFC", plain).lower()


def asked_stems(query: str, language: str) -> Counter[str]:
    """Return the stems of a query with their occurrences: stop words only if it has no others."""
    words = Counter(tokens(query))
    kept = sorted(set(words) - stop_words(language)) or sorted(words)
    times: Counter[str] = Counter()
    for word, stem in zip(kept, stemmer(language)(kept), strict=True):
        times[stem] += words[word]
    return times


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Occurrences of a query's stems in one text."""

    times: Mapping[str, int]
    """stem -> number of its words in the text; only those that occur"""
    length: int
    """tokens of the text; whole identifiers count only if one is asked for"""


def occurrences(contents: Sequence[str], stems: Collection[str], language: str) -> list[Occurrences]:
    """Count stems in texts.

    Args:
        contents: the texts, headings included.
        stems: stems to count.
        language: language of the words.
    """
    names = not all(stem.isalnum() for stem in stems)
    counted = [Counter(tokens(content, names=names)) for content in contents]
    words = sorted(set().union(*counted))
    stem_of = {word: stem for word, stem in zip(words, stemmer(language)(words), strict=True) if stem in stems}
    found = []
    for counts in counted:
        times: Counter[str] = Counter()
        for word in counts.keys() & stem_of.keys():
            times[stem_of[word]] += counts[word]
        found.append(Occurrences(times, counts.total()))
    return found
