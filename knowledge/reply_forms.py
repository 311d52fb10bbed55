"""How a language model can be held to JSON, and which way each service knows, as this process found out."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

ReplyForm = Literal["json_schema", "json_object", "text"]
"""the schema is kept to the letter; any JSON object; whatever the question says in words"""
Place = tuple[str, str]
"""url of a service and name of a model"""

_FORMS: tuple[ReplyForm, ...] = get_args(ReplyForm)
"""the strictest first"""
_lock = threading.Lock()
_known: dict[Place, ReplyForm] = {}


def forms_to_try(place: Place) -> Sequence[ReplyForm]:
    """The form that a model is known to take, alone; every form, the strictest first, while that is not known."""
    with _lock:
        known = _known.get(place)
    return _FORMS if known is None else (known,)


def remember_form(place: Place, form: ReplyForm) -> None:
    """Note that a model answered in a form."""
    with _lock:
        _known[place] = form


def response_format(form: ReplyForm, name: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The `response_format` of a request.

    Args:
        form: to ask for.
        name: of what is asked for: letters, digits, `-`.
        schema: of the reply.

    Source: https://platform.openai.com/docs/guides/structured-outputs
    """
    if form == "text":
        return None
    if form == "json_object":
        return {"type": form}
    return {"type": form, "json_schema": {"name": name, "strict": True, "schema": dict(schema)}}
