"""Dialects of chat services: how a reply is held to JSON and to a length, and which way each service knows."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

ReplyForm = Literal["json_schema", "json_object", "text"]
"""the schema is kept to the letter; any JSON object; whatever the question says in words"""
CapName = Literal["max_tokens", "max_completion_tokens"]
"""parameter that caps a reply: OpenAI's reasoning models refuse the older name, most other services know no other"""
Place = tuple[str, str]
"""url of a service and name of a model"""
Way = TypeVar("Way")


class Ways(Generic[Way]):
    """Ways to ask for the same, and the one that each model is known to take, as this process found out."""

    def __init__(self, *ways: Way) -> None:
        self._ways = ways
        self._known: dict[Place, Way] = {}
        self._lock = threading.Lock()

    def known(self, place: Place) -> Sequence[Way]:
        """The way that a model is known to take; every way, the best first, while that is not known."""
        with self._lock:
            return (self._known[place],) if place in self._known else self._ways

    def in_order(self, place: Place) -> Sequence[Way]:
        """Every way: the one that a model is known to take, then the others, the best first."""
        known = self.known(place)
        return (*known, *(way for way in self._ways if way not in known))

    def remember(self, place: Place, way: Way) -> None:
        """Note that a model answered when it was asked this way."""
        with self._lock:
            self._known[place] = way


FORMS = Ways[ReplyForm]("json_schema", "json_object", "text")
CAPS = Ways[CapName]("max_tokens", "max_completion_tokens")
"""at services other than OpenAI itself"""
OFFICIAL_CAPS = Ways[CapName]("max_completion_tokens", "max_tokens")


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
