"""YAML and TOML front matter, parsed with bounded growth because the file is untrusted."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from parquetry.model import Scalar
from parquetry.settings import bounded_toml

MAX_GROWTH = 10
"""maximum length of the values relative to the characters of the front matter; aliases repeat text"""
FREE_CHARACTERS = 10_000
"""characters that the values of any front matter may have"""

_BEGINNING = re.compile(r"(---|\+\+\+)[ \t]*\n")
_ENDS = {
    "---": re.compile(r"\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)"),
    "+++": re.compile(r"\n(?:\+\+\+|\.\.\.)[ \t]*(?:\n|\Z)"),
}
_MAX_FRONT_MATTER = 64 * 1024
"""characters; longer text is not front matter, and YAML takes quadratic time on hostile input"""
_MAX_BITS = 4096
"""bits of an integer; larger ones could not be written as text by every later step"""


def split_front_matter(text: str) -> tuple[str, dict[str, Scalar], str | None]:
    """Split YAML (`---`) or TOML (`+++`) front matter off a text.

    Returns:
        The text without it, its values (lists as comma-separated text), and a warning if it could not be read, in which
        case it stays in the text.
    """
    beginning = _BEGINNING.match(text)
    end = _ENDS[beginning[1]].search(text, beginning.end()) if beginning is not None else None
    if beginning is None or end is None or end.start() - beginning.end() > _MAX_FRONT_MATTER:
        return text, {}, None
    written = text[beginning.end() : end.start()]
    try:
        values = bounded_toml.loads(written) if beginning[1] == "+++" else _load_yaml(written)
    except ValueError as error:
        return text, {}, f"front matter could not be read: {error}"
    if not isinstance(values, dict):
        # A thematic break, a paragraph and another break, not front matter.
        return text, {}, None
    front = _scalars(values)
    if sum(len(str(value)) for value in front.values()) > FREE_CHARACTERS + MAX_GROWTH * len(written):
        return text, {}, f"front matter could not be read: its aliases make it more than {MAX_GROWTH} times as long"
    return text[end.end() :], front, None


def _load_yaml(text: str) -> object:
    from parquetry.extract.bounded_yaml import load

    return load(text)


def _scalars(values: dict[Any, Any]) -> dict[str, Scalar]:
    kept: dict[str, Scalar] = {}
    for key, value in values.items():
        if _is_scalar(value):
            kept[str(key)] = value.isoformat() if isinstance(value, date) else value
        elif isinstance(value, list) and all(map(_is_scalar, value)):
            kept[str(key)] = ", ".join(map(str, value))
    return kept


def _is_scalar(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= _MAX_BITS
    return isinstance(value, str | float | date)
