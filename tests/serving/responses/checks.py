"""Checks of responses and events: by the models of OpenAI's client, and by its published schema if it is there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

SCHEMA = Path(__file__).parents[4] / "shared" / "corpora" / "openai-schema" / "openapi-files-vector-stores-chat.json"
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
_ENDS = {"response.completed", "response.incomplete", "response.failed"}
_CONTENT = ("output_text", "refusal")


@cache
def _document() -> Mapping[str, Any]:
    return json.loads(SCHEMA.read_text("utf-8"))


@cache
def _validator(name: str) -> Draft202012Validator:
    document = _document()
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": document["components"]})


@cache
def _events_of_schema() -> Mapping[str, str]:
    """Return the schema of each type of event."""
    found = {}
    for name, schema in _document()["components"]["schemas"].items():
        for kind in schema.get("properties", {}).get("type", {}).get("enum", ()):
            if name.endswith("Event"):
                found[kind] = name
    return found


def fits_schema(value: Any, name: str) -> None:
    """Assert that a value fits a published schema; nothing if the schema is not there."""
    if SCHEMA.exists():
        errors = [best_match([each]) for each in _validator(name).iter_errors(value)]
        faults = [f"{each.json_path}: {each.message[:300]}" for each in errors if each is not None]
        assert faults == [], "\n".join(faults)


def check_response(response: Mapping[str, Any]) -> Response:
    """Assert that a response has OpenAI's form; return it as its client reads it."""
    fits_schema(response, "Response")
    read = Response.model_validate(response, strict=True)
    assert read.model_dump(exclude_unset=True, mode="json").keys() == response.keys()
    for item in read.output:
        if item.type == "message":
            for part in item.content:
                for annotation in part.annotations if part.type == "output_text" else ():
                    assert 0 <= annotation.index <= len(part.text)
    return read


def check_events(events: Sequence[Mapping[str, Any]]) -> Response:
    """Assert that events have OpenAI's form and order, and tell what the last one says; return its response."""
    for event in events:
        assert _EVENT.validate_python(event).type == event["type"]
        if SCHEMA.exists():
            fits_schema(event, _events_of_schema()[event["type"]])
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event["type"] in _ENDS for event in events] == [False] * (len(events) - 1) + [True]
    response = events[-1]["response"]
    assert {event["response"]["id"] for event in events if "response" in event} == {response["id"]}
    _check_items(events, response["output"])
    return check_response(response)


def _check_items(events: Iterable[Mapping[str, Any]], output: Sequence[Mapping[str, Any]]) -> None:
    """Assert that the events of each item add up to the item."""
    open_items: dict[int, Mapping[str, Any]] = {}
    done: dict[int, Mapping[str, Any]] = {}
    texts: dict[int, str] = {}
    annotations: dict[int, list[Any]] = {}
    for event in events:
        kind, index = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            assert index == len(open_items) + len(done)
            open_items[index] = event["item"]
            assert event["item"]["status"] == "in_progress"
        elif kind == "response.output_item.done":
            assert open_items.pop(index)["id"] == event["item"]["id"]
            done[index] = event["item"]
        elif index is not None:
            assert event["item_id"] == open_items[index]["id"]
            if kind.endswith(".delta"):
                texts[index] = texts.get(index, "") + event["delta"]
            elif kind.endswith("annotation.added"):
                found = annotations.setdefault(index, [])
                assert event["annotation_index"] == len(found)
                # What it points at has been sent.
                assert event["annotation"]["index"] == len(texts.get(index, ""))
                found.append(event["annotation"])
    assert open_items == {}
    assert [done[index] for index in sorted(done)] == list(output)
    for index, item in enumerate(output):
        if item["type"] == "message":
            (part,) = item["content"]
            assert texts.get(index, "") == next(part[name] for name in ("text", "refusal") if name in part)
            assert annotations.get(index, []) == part.get("annotations", [])
        elif item["type"] == "function_call":
            assert texts.get(index, "") == item["arguments"]
