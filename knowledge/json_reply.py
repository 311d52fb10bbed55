"""JSON in what a language model says: found, or refused with what is wrong with it."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from pydantic import ValidationError

REPLY_CHARACTERS = 200_000
"""of a reply at most; a long one has some thousands"""
_THOUGHT = ("<think>", "</think>")
"""around what some models say before they answer"""


def json_object(reply: str) -> Any:
    """The one JSON object of a reply, which may stand in a code block or between sentences.

    Nothing is repaired: the end of a cut reply could be the middle of a statement, and an object inside one that cannot
    be read could be something that the model quotes.

    Raises:
        ValueError: there is none, there are several, it cannot be read, or the reply is too long.
    """
    if len(reply) > REPLY_CHARACTERS:
        raise ValueError(f"it has {len(reply):,} characters, more than {REPLY_CHARACTERS:,}")
    if reply.startswith(_THOUGHT[0]):
        reply = reply.partition(_THOUGHT[1])[2]
    start = reply.find("{")
    if start < 0:
        raise ValueError("Invalid JSON: there is no object in it")
    try:
        value, end = json.JSONDecoder(parse_constant=_no_number).raw_decode(reply, start)
    except RecursionError:
        raise ValueError("Invalid JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"Invalid JSON: {error}") from error
    if reply[:start].rstrip().endswith("[") or "{" in reply[end:]:
        raise ValueError("it has to be one JSON object, and there is more")
    return value


def complaint(error: ValueError) -> str:
    """What is wrong with a reply, in one sentence that the model understands."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"Invalid JSON: {name} is no number")
