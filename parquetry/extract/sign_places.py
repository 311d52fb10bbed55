"""Places of signs and letters in a text, which tell whether its bytes were decoded rightly.

Statistics of letters decide between encodings where words have letters beyond ASCII. A text whose only such characters
are apostrophes or signs of currency has none, and in a wrong encoding these become letters where no letter stands.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_LAST_LATIN = "\u024f"
_MORE_LATIN = ("\u1e00", "\u1eff")
_APART = frozenset("€£¥¢¤§¶†‡•¼½¾¹±×÷¬¦‰")
"""signs without a letter on either side"""
_ENDINGS = frozenset("™®")
"""signs without a letter on the right"""
_QUOTES = frozenset("“”„‘‚«»‹›…")
_APOSTROPHES = frozenset("’´")
_AFTER_APOSTROPHE = ("s", "t", "d", "m", "ll", "re", "ve", "em", "am")
_BEFORE_APOSTROPHE = (
    "l",
    "d",
    "j",
    "n",
    "s",
    "t",
    "c",
    "m",
    "qu",
    "o",
    "lorsqu",
    "jusqu",
    "puisqu",
    "dell",
    "nell",
    "all",
)
_ACCENTS = frozenset("ˆ˜¨¯¸")
"""accents without a letter, which nobody types"""
_INVERTED = {"¿": "?", "¡": "!"}


def is_only_signs(text: str) -> bool:
    """Return True if all characters beyond ASCII are signs, and none is a letter."""
    return not any(character.isalpha() and character not in "µªº" for character in text if character > "\x7f")


def misplaced(text: str) -> int:
    """Return the number of signs and letters beyond ASCII that stand where none does.

    Args:
        text: at least one character; of a longer text, its lines that are not ASCII alone.
    """
    faults, alone, is_foreign = 0, 0, False
    for place, character in enumerate(text):
        if character > "\x7f" and not _is_letter(character):
            faults += not _is_in_place(text, place)
        elif character > "\x7f" and character.isupper() and text[place - 1 : place].islower():
            faults += 1
    for word in _words(text):
        foreign = sum(not _is_latin(character) for character in word)
        faults += 0 < foreign < len(word)
        alone += foreign == 1 == len(word)
        is_foreign |= foreign > 1
    return faults if is_foreign else faults + alone


def _is_letter(character: str) -> bool:
    return character not in "µªº" and (character.isalpha() or unicodedata.category(character).startswith("M"))


def _is_latin(character: str) -> bool:
    return character <= _LAST_LATIN or _MORE_LATIN[0] <= character <= _MORE_LATIN[1]


def _words(text: str) -> Iterator[str]:
    """Yield runs of letters."""
    start = None
    for place, character in enumerate(text):
        if _is_letter(character):
            start = place if start is None else start
        elif start is not None:
            yield text[start:place]
            start = None
    if start is not None:
        yield text[start:]


def _is_in_place(text: str, place: int) -> bool:
    sign = text[place]
    before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
    left, right = before.isalpha(), after.isalpha()
    if sign in _ACCENTS or sign <= "\x9f":
        return False
    if sign in _APART:
        return not left and not right
    if sign in _ENDINGS:
        return not right
    if sign in "–—":
        return not (left and right) or after.isupper() or (sign == "—" and _stands_between_words(text, place))
    if sign in _QUOTES:
        return not (left and right)
    if sign in _APOSTROPHES:
        return not (left and right) or _is_apostrophe(text, place)
    if sign in _INVERTED:
        return right and not left and _INVERTED[sign] in text[place:]
    return _is_in_its_unit(sign, before, after) if sign in "°²³ªºµ©·\xa0\xad" else not (left and right)


def _is_in_its_unit(sign: str, before: str, after: str) -> bool:
    match sign:
        case "°":
            return (not before.isalpha() or before in "nN") and (not after.isalpha() or after in "CFKcf")
        case "²" | "³":
            return (before.isdigit() or before in ("m", "M", ")")) and not after.isalpha()
        case "ª" | "º":
            return (before.isdigit() or before in ("n", "N", "M", "m")) and not after.isalpha()
        case "µ":
            return not before.isalpha() and (not after.isalpha() or after in "mgslFAVWH")
        case "©":
            return not before.isalpha()
        case "·":
            return before.isalpha() == after.isalpha()
        case "\xad":
            return before.isalpha() and after.isalpha()
        case _:
            return not (before.isalpha() and after.isalpha())


def _stands_between_words(text: str, place: int) -> bool:
    """Return True between words; a letter alone is rather the end of one."""
    before, after = text[max(0, place - 2) : place], text[place + 1 : place + 3]
    return len(before) == len(after) == 2 and before.isalpha() and after.isalpha()


def _is_apostrophe(text: str, place: int) -> bool:
    end = place + 1
    while end < len(text) and text[end].isalpha() and end - place < 4:
        end += 1
    begin = place
    while begin and text[begin - 1].isalpha() and place - begin < 8:
        begin -= 1
    return text[place + 1 : end].lower() in _AFTER_APOSTROPHE or text[begin:place].lower() in _BEFORE_APOSTROPHE
