"""Streams as a client reads them."""

from __future__ import annotations

import json


def events_of(response):
    """Return the values of all events of a stream, without its end."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def text_in(events):
    return "".join(each["choices"][0]["delta"].get("content") or "" for each in events if each["choices"])


def sources_in(events):
    """Return the sources; they stand in the last chunk that has a choice, and nowhere else."""
    holding = [place for place, each in enumerate(events) if "rag_sources" in each]
    with_choice = [place for place, each in enumerate(events) if each["choices"]]
    assert holding == with_choice[-1:]
    return events[holding[0]]["rag_sources"]


def error_of(response, status, code):
    """Return the message of an error in OpenAI's form."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["code"] == code, error
    return error["message"]
