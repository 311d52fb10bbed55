"""Dialects of chat services: how to request JSON and limit the length of a reply, and what each service supports."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

ReplyForm = Literal["json_schema", "json_object", "text"]
"""strict JSON schema; any JSON object; only the wording of the question"""
CapName = Literal["max_tokens", "max_completion_tokens"]
"""parameter that limits a reply: OpenAI's reasoning models reject the older name, most other services know only that"""
Place = tuple[str, str]
"""URL of a service and name of a model"""
Way = TypeVar("Way")


class Ways(Generic[Way]):
    """Alternative ways to ask for the same thing, and the one that each model accepted in this process."""

    def __init__(self, *ways: Way) -> None:
        self._ways = ways
        self._known: dict[Place, Way] = {}
        self._lock = threading.Lock()

    def known(self, place: Place) -> Sequence[Way]:
        """Return the way that a model is known to accept, or every way, best first, if none is known yet."""
        with self._lock:
            return (self._known[place],) if place in self._known else self._ways

    def in_order(self, place: Place) -> Sequence[Way]:
        """Return every way: the one that a model is known to accept, then the others, best first."""
        known = self.known(place)
        return (*known, *(way for way in self._ways if way not in known))

    def remember(self, place: Place, way: Way) -> None:
        """Record that a model answered when asked this way."""
        with self._lock:
            self._known[place] = way


FORMS = Ways[ReplyForm]("json_schema", "json_object", "text")
CAPS = Ways[CapName]("max_tokens", "max_completion_tokens")
"""limit parameters at services other than OpenAI itself"""
OFFICIAL_CAPS = Ways[CapName]("max_completion_tokens", "max_tokens")


def response_format(form: ReplyForm, name: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the `response_format` of a request.

    Args:
        form: reply form to request.
        name: name of the reply: letters, digits, `-`.
        schema: JSON schema of the reply.

    Source: https://platform.openai.com/docs/guides/structured-outputs
    """
    if form == "text":
        return None
    if form == "json_object":
        return {"type": form}
    return {"type": form, "json_schema": {"name": name, "strict": True, "schema": dict(schema)}}
