"""Numbers with their units and bounds, dates and times of day, parsed from the words of a statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from parquetry.sessions import cue_words as cues
from parquetry.sessions.statement import Word

_NUMBER = re.compile(
    r"(?P<bound>[<>≤≥]=?|=)?(?P<sign>[-+−])?(?P<currency>[$€£¥])?"
    r"(?P<digits>\d(?:[\d,.'_]*\d)?)-?(?P<suffix>[a-zµ°%€$£¥]*)\??$",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"(?P<low>[$€£¥]?\d[\d.,]*)[-–—](?P<high>[$€£¥]?\d[\d.,]*(?P<suffix>[a-zµ°%€$£¥]*))$", re.IGNORECASE
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_ISO_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?(?:t\d.*)?$", re.IGNORECASE)
_NUMERIC_DATE = re.compile(r"\d{1,2}([./])\d{1,2}\1(?:\d{4}|\d{2})$")
_CLOCK = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?P<second>:\d{2})?(?P<half>[ap]m)?$", re.IGNORECASE)
_HOUR = re.compile(r"(?P<hour>\d{1,2})(?P<half>[ap]m)$", re.IGNORECASE)
_DAY = re.compile(r"(?P<day>\d{1,2})(?:st|nd|rd|th)?$", re.IGNORECASE)
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d$")
_BETWEEN = 2
"""maximum function words between a number and its neighbour"""
_SYMBOL_BOUNDS = {"≤": "<=", "≥": ">="}
Number = tuple[str, str | None, str | None]
"""value, unit, bound"""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a statement."""

    value: str
    """digits as written, without grouping: 3.10 is not 3.1"""
    unit: str | None
    bound: str | None
    """`>=`, `<`, ..."""
    before: str
    """stem of the content word just before it; empty if there is none"""
    after: str
    """stem of the content word right after it; empty if there is none"""

    def covers(self, other: Quantity) -> bool:
        """Return True if it is at least as specific as another quantity."""
        return self.value == other.value and other.unit in (None, self.unit) and other.bound in (None, self.bound)


def moments_and_quantities(words: Sequence[Word]) -> tuple[frozenset[str], tuple[Quantity, ...], list[Word]]:
    """Separate a statement's times and numbers from its other words.

    Returns:
        Dates, times and words of the calendar in one spelling; the numbers; the remaining words.
    """
    moments: set[str] = set()
    quantities: list[Quantity] = []
    rest: list[Word] = []
    at = 0
    while at < len(words):
        moment, used = _moment(words, at)
        if used:
            moments.add(moment)
            at += used
            continue
        numbers, used = _numbers(words, at)
        if used:
            around = (_before(words, at), _after(words, at + used))
            bound = _bound(words, at)
            quantities += [Quantity(value, unit, own or bound, *around) for value, unit, own in numbers]
            at += used
            continue
        rest.append(words[at])
        at += 1
    return frozenset(moments), tuple(quantities), rest


def _moment(words: Sequence[Word], at: int) -> tuple[str, int]:
    """Return the date, time or word of the calendar that begins here, and its number of words; 0 if there is none."""
    plain = words[at].plain
    following = _plain(words, at + 1).replace(".", "")
    if _ISO_DATE.match(plain) or _NUMERIC_DATE.match(plain):
        return plain, 1
    if clock := _CLOCK.match(plain) or _HOUR.match(plain):
        half = clock["half"] or (following if following in ("am", "pm") else "")
        return _time(clock, half), 1 if clock["half"] or not half else 2
    if re.fullmatch(r"\d{1,2}", plain) and following in ("am", "pm"):
        return f"{_hour(int(plain), following):02}:00", 2
    if plain in cues.CALENDAR:
        return plain.removesuffix("s"), 1
    return _date(words, at)


def _time(clock: re.Match[str], half: str) -> str:
    minutes = clock.groupdict().get("minute") or "00"
    seconds = clock.groupdict().get("second") or ""
    return f"{_hour(int(clock['hour']), half.lower()):02}:{minutes}{seconds}"


def _hour(hour: int, half: str) -> int:
    if half == "am":
        return 0 if hour == 12 else hour
    return hour + 12 if half == "pm" and hour < 12 else hour


def _date(words: Sequence[Word], at: int) -> tuple[str, int]:
    """Return a date with a named month: 5 March 2024, the 5th of March, March 5, 2024, March 2024, March."""
    day, place = _DAY.match(words[at].plain), at
    if day is not None:
        place += 2 if _plain(words, at + 1) in ("of", "de") else 1
    month = _month(words, place)
    if month is None:
        return "", 0
    end = place + 1
    if day is None and (day := _DAY.match(_plain(words, end))) is not None:
        end += 1
    year = _plain(words, end) if _YEAR.match(_plain(words, end)) else ""
    if not year and day is None and words[at].plain in cues.AMBIGUOUS_MONTHS and not _follows_preposition(words, at):
        return "", 0
    return "-".join((year, month, f"{int(day['day']):02}" if day else "")), end + bool(year) - at


def _plain(words: Sequence[Word], at: int) -> str:
    return words[at].plain if at < len(words) else ""


def _follows_preposition(words: Sequence[Word], at: int) -> bool:
    return at > 0 and not words[at].first and words[at - 1].plain in cues.BEFORE_MONTH


def _month(words: Sequence[Word], at: int) -> str | None:
    if at >= len(words) or not words[at].raw[0].isupper():
        return None
    return cues.MONTHS.get(words[at].plain.removesuffix("."))


def _numbers(words: Sequence[Word], at: int) -> tuple[list[Number], int]:
    """Return values, units and bounds of the number or range that begins here, and its number of words."""
    raw = words[at].raw
    following = words[at + 1] if at + 1 < len(words) and not words[at].closes else None
    if span := _RANGE.match(raw):
        ends = [each for each in (_digits(span["low"]), _digits(span["high"])) if each is not None]
        if len(ends) == 2:
            unit, used = _unit(ends[1][1], following)
            return [(value, own or unit, bound) for value, own, bound in ends], 1 + used
    if (number := _digits(raw)) is not None:
        value, suffix, bound = number
        unit, used = _unit(suffix, following)
        return [(value, unit, bound)], 1 + used
    return _spelled(words, at)


def _digits(raw: str) -> Number | None:
    """Return value, unit and bound of a number in digits; None for an identifier that merely begins like one."""
    match = _NUMBER.match(raw)
    if match is None or match["digits"].count(".") > 1:
        return None
    digits = match["digits"]
    value = digits.replace(",", "") if _GROUPED.match(digits) else digits
    value = re.sub(r"['_](?=\d{3})", "", value)
    suffix = match["suffix"].casefold()
    if suffix == "k" and "." not in value:
        value, suffix = f"{value}000", ""
    if suffix and suffix not in cues.UNITS:
        return None
    sign = "-" if match["sign"] in ("-", "−") else ""
    unit = cues.UNITS[match["currency"] or suffix] if match["currency"] or suffix else None
    bound = match["bound"]
    return sign + value, unit, _SYMBOL_BOUNDS.get(bound, bound) if bound else None


def _unit(own: str | None, following: Word | None) -> tuple[str | None, int]:
    """Return the unit of a number, and 1 if the next word is that unit."""
    if own is None and following is not None and following.plain in cues.UNITS:
        return cues.UNITS[following.plain], 1
    return own, 0


def _spelled(words: Sequence[Word], at: int) -> tuple[list[Number], int]:
    """Return a number in English words."""
    following, plain = _plain(words, at + 1), words[at].plain
    if plain in cues.REPEATED and (plain != "once" or following in ("a", "per", "every", "each")):
        return [(cues.REPEATED[plain], "x", None)], 1
    if plain == "one" and _stands_for_something(words, at):
        return [], 0
    total, part, used = 0, 0, 0
    # Not a slice: a long text would be copied once for every word.
    for word in (words[place] for place in range(at, len(words))):
        values = [cues.NUMBER_WORDS.get(each) for each in word.plain.split("-")]
        if word.plain in cues.MULTIPLIERS and used:
            part *= cues.MULTIPLIERS[word.plain]
            if cues.MULTIPLIERS[word.plain] > 100:
                total, part = total + part, 0
        elif None not in values and (not used or part % 10 == 0):
            part += sum(value for value in values if value is not None)
        else:
            break
        used += 1
        if word.closes:
            break
    if not used:
        return [], 0
    end = at + used
    unit, more = _unit(None, words[end] if end < len(words) and not words[end - 1].closes else None)
    return [(str(total + part), unit, None)], used + more


def _stands_for_something(words: Sequence[Word], at: int) -> bool:
    """Return True if `one` at a position is a pronoun or serves as an article."""
    following = words[at + 1].plain if at + 1 < len(words) and not words[at].closes else "that"
    before = words[at - 1].plain if at and not words[at].first else ""
    opens = (words[at].first or words[at - 1].closes) and following not in cues.UNITS
    return opens or following in cues.AFTER_ONE or before in cues.BEFORE_ONE


def _bound(words: Sequence[Word], at: int) -> str | None:
    """Return the bound that the words in front of a number express."""
    before = tuple(word.plain for word in words[max(0, at - cues.LONGEST_BOUND) : at])
    for length in range(len(before), 0, -1):
        if before[-length:] in cues.BOUNDS:
            return cues.BOUNDS[before[-length:]]
    return None


def _before(words: Sequence[Word], at: int) -> str:
    """Return the word before a number: `timeout 30`, `timeout of 30`, `timeout is at 30`."""
    if words[at].first:
        return ""
    for word in reversed(words[max(0, at - _BETWEEN - 1) : at]):
        if word.closes:
            return ""
        if not word.function:
            return word.stem if word.raw[0].isalpha() else ""
        if word.first:
            return ""
    return ""


def _after(words: Sequence[Word], end: int) -> str:
    """Return the word that a number counts: `3 retries`."""
    if end >= len(words) or words[end].first or words[end - 1].closes:
        return ""
    return words[end].stem if not words[end].function and words[end].raw[0].isalpha() else ""
