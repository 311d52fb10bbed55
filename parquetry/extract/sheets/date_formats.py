"""Dates and times in the form that the format of their cell gives."""

from __future__ import annotations

import locale as locales
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Protocol

_ENGLISH = 0x409
_HALF_SECOND = timedelta(seconds=0.5)


class FormatToken(Protocol):
    """A piece of a format."""

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...


class DateSection:
    """A format of dates, times or durations.

    Args:
        tokens: pieces of the format in order.
        locale: Windows' number of the language of names; 0 for English.
    """

    def __init__(self, tokens: Sequence[FormatToken], locale: int) -> None:
        self._tokens = tokens
        self._locale = locale
        self._parts_of_seconds = any(token.kind == "date" and "." in token.text for token in tokens)
        self._half_days = any(token.kind == "ampm" for token in tokens)

    def show(self, value: datetime | date | time | timedelta) -> str:
        """Return the value as its cell shows it."""
        moment, seconds = _moment(value)
        if not self._parts_of_seconds and moment.microsecond:
            moment = (moment + _HALF_SECOND).replace(microsecond=0)
            seconds = round(seconds)
        pieces = []
        for place, token in enumerate(self._tokens):
            if token.kind == "date":
                pieces.append(self._date(token.text.lower(), place, moment, seconds))
            elif token.kind == "elapsed":
                size = {"h": 3600, "m": 60, "s": 1}[token.text[0]]
                pieces.append(f"{int(seconds // size):0{len(token.text)}d}")
            elif token.kind == "ampm":
                pieces.append("AM" if moment.hour < 12 else "PM")
            elif token.kind == "digit":
                pieces.append(token.text if token.text == "0" else "")
            elif token.text != "@":
                pieces.append(token.text)
        return " ".join("".join(pieces).split())

    def _date(self, text: str, place: int, moment: datetime, seconds: float) -> str:
        kind, width = text[0], len(text)
        if kind == "m" and width <= 2 and self._means_minutes(place):
            return f"{moment.minute:0{width}d}"
        match kind:
            case "y" | "e":
                return f"{moment.year:04d}" if width > 2 or kind == "e" else f"{moment.year % 100:02d}"
            case "m":
                return f"{moment.month:0{width}d}" if width < 3 else self._month(moment.month, width)
            case "d":
                return f"{moment.day:0{width}d}" if width < 3 else self._weekday(moment.weekday(), width)
            case "h":
                hour = (moment.hour + 11) % 12 + 1 if self._half_days else moment.hour
                return f"{hour:0{min(width, 2)}d}"
            case "s":
                whole, _, decimals = text.partition(".")
                shown = f"{moment.second:0{min(len(whole), 2)}d}"
                return f"{shown}.{f'{seconds % 1:.{len(decimals)}f}'[2:]}" if decimals else shown
        return ""

    def _means_minutes(self, place: int) -> bool:
        """Return True if an `m` stands behind hours or before seconds."""
        before = next((t for t in reversed(self._tokens[:place]) if t.kind in ("date", "elapsed")), None)
        after = next((t for t in self._tokens[place + 1 :] if t.kind in ("date", "elapsed")), None)
        return bool((before is not None and before.text[0] in "hH") or (after is not None and after.text[0] in "sS"))

    def _month(self, month: int, width: int) -> str:
        wide, short, _ = _names(self._locale)
        name = wide[month - 1] if width == 4 else short[month - 1]
        return name if width < 5 else wide[month - 1][:1]

    def _weekday(self, weekday: int, width: int) -> str:
        _, _, (wide, short) = _names(self._locale)
        return wide[weekday] if width > 3 else short[weekday]


def _moment(value: datetime | date | time | timedelta) -> tuple[datetime, float]:
    """Return a value as date and time, and as seconds since the beginning of its day or duration."""
    if isinstance(value, timedelta):
        seconds = abs(value.total_seconds())
        return datetime(1899, 12, 31) + timedelta(seconds=seconds % 86_400), seconds
    if isinstance(value, time):
        moment = datetime.combine(date(1899, 12, 31), value)
    elif isinstance(value, datetime):
        moment = value
    else:
        moment = datetime(value.year, value.month, value.day)
    return moment, moment.hour * 3600 + moment.minute * 60 + moment.second + moment.microsecond / 1e6


Names = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]]


@lru_cache(maxsize=64)
def _names(locale: int) -> Names:
    """Return the months, wide and short, and the weekdays from Monday on, in a language."""
    from babel import Locale, UnknownLocaleError

    code = locales.windows_locale.get(locale or _ENGLISH, "en_US")
    try:
        language = Locale.parse(code)
    except (UnknownLocaleError, ValueError):
        language = Locale("en")
    months, days = language.months["format"], language.days["format"]
    return (
        tuple(months["wide"][number] for number in range(1, 13)),
        tuple(months["abbreviated"][number].rstrip(".") for number in range(1, 13)),
        (
            tuple(days["wide"][number] for number in range(7)),
            tuple(days["abbreviated"][number].rstrip(".") for number in range(7)),
        ),
    )
