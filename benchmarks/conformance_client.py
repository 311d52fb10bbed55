"""Requests of the conformance check, and what is kept of their answers."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

ERROR = {"message": (str,), "type": (str,), "param": (str, type(None)), "code": (str, type(None))}
"""members of an error -> their types"""
MISSING = object()


@dataclass(frozen=True)
class Call:
    """A request."""

    operation: str
    """method and path, as the schema names it"""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    form: Mapping[str, Any] | None = None
    """fields of a form by their paths; `file` is a pair of name and bytes"""

    def changed(self, group: str, place: str, value: Any) -> Call:
        """Return the request with another value at a place, or without it for `MISSING`."""
        given = copy.deepcopy(getattr(self, group))
        if group == "body":
            put(given, place, value)
        elif value is MISSING:
            del given[place]
        else:
            given[place] = value
        return replace(self, **{group: given})


def steps_of(place: str) -> list[str | int]:
    """Return the steps of a place: names, and 0 for each of a list."""
    found: list[str | int] = []
    for name in place.split("."):
        found.append(name.removesuffix("[]"))
        if name.endswith("[]"):
            found.append(0)
    return found


def at(value: Any, place: str) -> Any:
    """Return the value at a place; `MISSING` if there is none. `*` stands for any name."""
    for step in steps_of(place) if place else ():
        if step == "*" and isinstance(value, dict) and value:
            value = next(iter(value.values()))
        elif isinstance(step, str) and isinstance(value, dict) and step in value:
            value = value[step]
        elif step == 0 and isinstance(value, list) and value:
            value = value[0]
        else:
            return MISSING
    return value


def put(value: Any, place: str, new: Any) -> None:
    """Set the value at a place, or delete it for `MISSING`."""
    *way, last = steps_of(place)
    for step in way:
        value = value[step]
    if last == "*":
        last = next(iter(value))
    if new is MISSING:
        del value[last]
    else:
        value[last] = new


class Recorder:
    """Client that keeps the JSON of all answers by their operations.

    Args:
        url: address of the service.
        key: API key.
    """

    def __init__(self, url: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(base_url=f"{url}/v1", headers=headers, timeout=120, trust_env=False)
        self.answers: dict[str, list[Any]] = defaultdict(list)

    def send(self, call: Call, **options: Any) -> httpx.Response:
        """Send a request."""
        method, _, path = call.operation.partition(" ")
        options["params"] = {**call.query, **options.pop("params", {})}
        if call.form is not None:
            parts = {name: value for name, value in call.form.items() if name != "file"}
            options["data"] = {_form_name(name): str(value) for name, value in parts.items()}
            # A form without a file is a form all the same.
            options["files"] = {"file": call.form["file"]} if "file" in call.form else {"": ("", b"")}
        elif call.body is not None:
            options["json"] = call.body
        response = self._client.request(method, path.format(**call.path), **options)
        if response.is_success and response.headers["content-type"].startswith("application/json"):
            self.answers[call.operation].append(response.json())
        return response

    def ask(self, call: Call) -> Any:
        """Return the JSON of an answer that succeeded."""
        response = self.send(call)
        if not response.is_success:
            raise SystemExit(f"{call.operation}: {response.status_code} {response.text[:500]}")
        return response.json()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _form_name(place: str) -> str:
    first, *others = place.split(".")
    return first + "".join(f"[{name}]" for name in others)


def fault_of(response: httpx.Response, status: int, param: str | None = None) -> str | None:
    """Return what is wrong with an answer that should be an error; None if nothing is.

    Args:
        response: the answer.
        status: status it should have.
        param: first step of the place that it should name.
    """
    if response.status_code != status:
        return f"answers {response.status_code}, not {status}"
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return "answers no error object"
    for name, types in ERROR.items():
        if name not in error or not isinstance(error[name], types):
            return f"has no usable `{name}` in its error"
    named = str(error["param"]).partition(".")[0]
    return f"names {named!r} as `param`" if param is not None and named != param else None
