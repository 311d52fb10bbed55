"""OpenAI's client of the responses API, with every answer checked; what its tests ask for."""

from __future__ import annotations

import json
from typing import Any

import openai
from openai.types.responses import Response

from parquetry.serving.stores.namespaces import store_id_of
from tests.servers.model_service import (
    call,
)
from tests.serving.responses.checks import check_events, check_response, fits_schema

STORE = store_id_of("default")
TOOL = {"type": "file_search", "vector_store_ids": [STORE]}
RESULTS = ["file_search_call.results"]
FUNCTION = {
    "type": "function",
    "name": "get_time",
    "description": "Tell the time.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
    "strict": False,
}
SEARCHES = call("file_search", queries=["How much is the oak table?"])


def client_of(app: Any, key: str, **more: Any) -> openai.OpenAI:
    """Return OpenAI's client with a key."""
    return openai.OpenAI(base_url=f"{app.url}/v1", api_key=key, max_retries=0, timeout=30, **more)


def token_of(app: Any, user: str, *rights: str, **more: Any) -> str:
    """Return a token of a user."""
    _, plain = app.resources.tokens.create(f"for {user}", user_id=user, rights=rights or ("search", "read"), **more)
    return plain


def create(client: openai.OpenAI, stream: bool = False, **fields: Any) -> Response:
    """Return a response, with its form checked, and that of its events."""
    asked = {"model": "m", "input": "How much is the oak table?", **fields}
    fits_schema(asked, "CreateResponse")
    if not stream:
        raw = client.responses.with_raw_response.create(**asked)
        return check_response(json.loads(raw.content))
    with client.responses.with_streaming_response.create(**asked, stream=True) as raw:
        return check_events(events_of(raw.read().decode()))


def events_of(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream, whose names are their types."""
    found = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found
