"""JSON and JSON Lines, value by value, so that a file of thousands of sessions is never in memory as objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from parquetry.errors import BrokenDocument

HEAD_VALUES = 64
"""number of values at the beginning from which a format is detected"""
MOST_PROBLEMS = 100
"""maximum problems of one file that are reported one by one"""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_JSON_START = re.compile(r"\s*(?:\{\s*(?:[\"}]|\Z)|\[\s*(?:[\[{\"\]]|\Z))")
"""beginning of JSON, valid or not. Markdown begins with `[` as well, but not with `["` or `[{`."""


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a text: the elements of one array, the lines of JSON Lines, or the only value."""

    text: str = field(repr=False)
    layout: Literal["value", "array", "lines"]
    head: tuple[object, ...]
    """first values"""
    bad_lines: frozenset[int] = frozenset()
    """1-based numbers of the lines of JSON Lines that are not JSON"""
    problems: tuple[tuple[int, str], ...] = ()
    """descriptions of the first `MOST_PROBLEMS` bad lines, by number"""
    complete: bool = False
    """True if `head` holds all values"""

    def each(self) -> Iterator[tuple[str, object]]:
        """Yield all values, parsed one at a time, with their positions: `line 12`, `item 3`."""
        match self.layout:
            case "value":
                # Parsed already: as objects, a value takes many times the memory of its text.
                yield "item 1", self.head[0]
            case "array":
                for number, value in enumerate(self.head if self.complete else _elements(self.text), start=1):
                    yield f"item {number}", value
            case "lines":
                for number, line in _lines(self.text):
                    if number not in self.bad_lines:
                        yield f"line {number}", json.loads(line)


def find_values(text: str) -> Values | None:
    """Return the JSON values of a text.

    The whole text is parsed once, so that `Values.each` later finds no errors.

    Returns:
        None if it is not JSON at all.

    Raises:
        BrokenDocument: `damaged`, it begins as JSON and is not; one line of many may be wrong.
        RecursionError: it is nested deeper than the parser allows.
    """
    if not _JSON_START.match(text):
        return _some_lines(text)
    try:
        return _whole(text)
    except (RecursionError, ValueError) as error:
        found = _some_lines(text)
        if found is not None:
            return found
        if isinstance(error, RecursionError):
            raise
        if isinstance(error, json.JSONDecodeError):
            problem = f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
            raise BrokenDocument("damaged", problem) from error
        raise BrokenDocument("damaged", f"not readable JSON: {error}") from error


def _whole(text: str) -> Values:
    """Return the value of a text that is one JSON value."""
    if not text.lstrip().startswith("["):
        value = _DECODER.decode(text)
        return Values(text, "value", (value,), complete=True)
    head: list[object] = []
    complete = True
    for value in _elements(text):
        complete = len(head) < HEAD_VALUES
        if complete:
            head.append(value)
    return Values(text, "array", tuple(head), complete=complete)


def _elements(text: str) -> Iterator[object]:
    """Yield the elements of a JSON array."""
    place = _after_space(text, text.index("[") + 1)
    if text[place : place + 1] == "]":
        place += 1
    else:
        while True:
            value, place = _DECODER.raw_decode(text, place)
            yield value
            place = _after_space(text, place)
            sign = text[place : place + 1]
            place += 1
            if sign == "]":
                break
            if sign != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, place - 1)
            place = _after_space(text, place)
    place = _after_space(text, place)
    if place != len(text):
        raise json.JSONDecodeError("Extra data", text, place)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found is not None else place


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank. Only a line feed ends one: JSON may contain every other line break."""
    start, number = 0, 1
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not text[start:end].isspace() and end > start:
            yield number, text[start:end]
        start, number = end + 1, number + 1


def _some_lines(text: str) -> Values | None:
    """Return JSON Lines of which at least every other line is an object or an array."""
    head: list[object] = []
    bad: set[int] = set()
    problems: list[tuple[int, str]] = []
    good = others = 0
    for number, line in _lines(text):
        try:
            value = json.loads(line)
        except (RecursionError, ValueError) as error:
            bad.add(number)
            if len(bad) > HEAD_VALUES and good == 0:
                return None
            if len(problems) < MOST_PROBLEMS:
                problem = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
                problems.append((number, problem))
            continue
        if isinstance(value, dict | list):
            good += 1
        else:
            others += 1
        if len(head) < HEAD_VALUES:
            head.append(value)
    if good == 0 or good < len(bad) + others:
        return None
    return Values(text, "lines", tuple(head), frozenset(bad), tuple(problems))
