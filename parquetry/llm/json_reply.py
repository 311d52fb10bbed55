"""Extraction of the JSON object from a model's reply, with a description of what is wrong if there is none."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from pydantic import ValidationError

REPLY_CHARACTERS = 200_000
"""maximum characters of a reply; a long one has a few thousand"""
_SHOWN_AGAIN = 20_000
"""maximum characters of a reply shown to the model when it is asked for a better one"""
_SHOWN_OF_CUT = 1000
"""the same for a truncated reply: as much again would be truncated again"""
_THOUGHT = ("<think>", "</think>")
"""marks around the reasoning that some models put before the answer"""


def json_object(reply: str) -> Any:
    """Return the one JSON object of a reply, which may stand in a code block or between sentences.

    Nothing is repaired: the end of a truncated reply could be the middle of a statement, and an object inside one that
    cannot be parsed could be something that the model quotes.

    Raises:
        ValueError: there is no object or more than one, it cannot be parsed, or the reply is too long.
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


def complaint(error: ValueError, *, cut: bool) -> str:
    """Describe what is wrong with a reply, in one sentence for the model.

    Args:
        error: raised by reading the reply.
        cut: True if the reply reached its token limit.
    """
    if cut:
        return "it was too long and was cut before its end"
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def asked_again(reply: str, wrong: str, *, cut: bool) -> list[dict[str, str]]:
    """Return the messages that ask for a better reply: the invalid reply, and what is wrong with it.

    Args:
        reply: of the model; some services require alternating roles, so part of it is always included.
        wrong: description from `complaint`.
        cut: True if the reply reached its token limit.
    """
    wanted = "Send JSON alone that is complete and shorter" if cut else "Send the corrected JSON alone"
    return [
        {"role": "assistant", "content": reply[: _SHOWN_OF_CUT if cut else _SHOWN_AGAIN] or "{"},
        {"role": "user", "content": f"This reply cannot be used: {wrong}. {wanted}."},
    ]


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"Invalid JSON: {name} is no number")
