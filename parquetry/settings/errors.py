"""Errors in a settings file, described in terms of the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from parquetry.known_secrets import names_secret
from parquetry.masking import masked

_IN_TOML = {"model_type": "must be a table of settings", "tuple_type": "must be a list"}
"""pydantic error type -> message for a settings file, where pydantic's own message is about Python"""

MOST_SHOWN = 80
"""characters of a value repeated in a message"""
_TOKEN = re.compile(r"(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[\w+/=.~-]{20,}", re.IGNORECASE)
"""single word of letters and digits that is longer than a name"""


def explain(error: Any, settings: type[BaseModel]) -> str:
    """Format one of pydantic's errors in terms of the file.

    Args:
        error: one of `ValidationError.errors()`.
        settings: the model that validation failed for.

    Returns:
        Key, error and value; for an unknown key, the nearest valid one.
    """
    location = [part for part in error["loc"] if isinstance(part, str | int)]
    key = _dotted(location)
    if error["type"] == "extra_forbidden":
        known = _fields_at(location[:-1], settings)
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean {_dotted([*location[:-1], near[0]])}?" if near else f"known: {', '.join(known)}"
        return f"unknown setting {key}; {hint}"
    message = _IN_TOML.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    value = error.get("input")
    if len(location) == 1:
        message += _brackets(key, error["type"], value)
    for text in _texts(value):
        # Our own validators repeat the value.
        shown = _shown(key, text)
        message = message.replace(repr(text), shown if shown == repr(text) else f"({shown})")
    told = "" if isinstance(value, dict | list | BaseModel) or value is None else f" (it is {_shown(key, value)})"
    return masked(f"{key}: {message}{told}" if key else message)


def _brackets(key: str, kind: str, value: Any) -> str:
    """Return how a table is written that has a pair of brackets too few or too many; empty if it is not that."""
    if kind == "tuple_type" and isinstance(value, dict):
        return f", each of its tables under [[{key}]]"
    if kind == "model_type" and isinstance(value, list):
        return f", under [{key}] instead of [[{key}]]"
    return ""


def _shown(key: str, value: Any) -> str:
    """Format a value for a message, unless it is long or may be a secret in the wrong place."""
    # Imported only for an error: its patterns are slow to compile.
    from parquetry.credentials import credentials

    text = str(value)
    if len(text) > MOST_SHOWN:
        return f"of {len(text)} characters"
    named = any(names_secret(part) for part in re.split(r"[.\[\]]+", key))
    if named or (isinstance(value, str) and (credentials(text) or _TOKEN.fullmatch(text))):
        return "not shown: it may be a secret"
    return repr(value)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a rejected value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _dotted(location: list[str | int]) -> str:
    text = ""
    for part in (each if isinstance(each, int) else each[:MOST_SHOWN] for each in location):
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _fields_at(location: list[str | int], model: type[BaseModel]) -> list[str]:
    for part in location:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        arguments = getattr(annotation, "__args__", ())
        model = next(a for a in (annotation, *arguments) if isinstance(a, type) and issubclass(a, BaseModel))
    return list(model.model_fields)
