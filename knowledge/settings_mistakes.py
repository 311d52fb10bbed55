"""What is wrong in a settings file, said in terms of the file."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import BaseModel

_IN_TOML = {"model_type": "must be a table of settings", "tuple_type": "must be a list"}
"""pydantic error type -> what it means in a settings file, where pydantic's words are about Python"""


def explain(error: Any, settings: type[BaseModel]) -> str:
    """One line of pydantic's complaint, in terms of the file.

    Args:
        error: one of `ValidationError.errors()`.
        settings: the model that was not met.

    Returns:
        Key, what is wrong with it, and its value; the nearest valid key for an unknown one.
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
    shown = "" if isinstance(value, dict | list | BaseModel) or value is None else f" (it is {value!r})"
    return f"{key}: {message}{shown}" if key else message


def _dotted(location: list[str | int]) -> str:
    text = ""
    for part in location:
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
