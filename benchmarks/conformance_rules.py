"""Cases of the conformance check, made from the list of properties: what is taken, refused and answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from benchmarks.conformance_client import MISSING, Call, Recorder, at, fault_of, steps_of
from benchmarks.conformance_effects import EFFECTS
from benchmarks.conformance_scene import Scene

UNKNOWN = "no_such_field"
_JSON = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
_WRONG = ({UNKNOWN: 1}, 7, "text", True)
"""one of them has none of the types of a property"""
Rules = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """Something that the schema says, and how the service does."""

    operation: str
    place: str
    """path of the property; empty for the operation itself"""
    kind: str
    fault: str | None
    """None if the service conforms"""


def is_a(value: Any, types: list[str]) -> bool:
    """Return True if a value of JSON has one of some types; all have an empty list."""
    if isinstance(value, bool):
        return not types or "boolean" in types
    return not types or any(isinstance(value, _JSON[each]) for each in types)


def request_cases(scene: Scene, operation: str, listed: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases of the properties of an operation's requests."""
    for name in listed.get("path", {}):
        yield Case(operation, name, "taken", _refusal(scene.client.send(scene.calls(operation)[0])))
        unknown = "file-unknown" if name == "file_id" else "vs_unknown"
        call = scene.calls(operation)[0].changed("path", name, unknown)
        yield Case(operation, name, "unknown id", fault_of(scene.client.send(call), 404))
    for group in ("query", "form", "body"):
        for place, rules in listed.get(group, {}).items():
            if place:
                for value in rules.get("values", [None]):
                    kind = "taken" if value is None else f"`{value}` taken"
                    yield Case(operation, place, kind, _fault_of_value(scene, operation, group, place, value))
            for kind, wrong, param in _violations(group, place, rules):
                yield Case(operation, place, kind, _fault_of_refusal(scene, operation, group, place, wrong, param))


def _refusal(response: httpx.Response) -> str | None:
    return None if response.is_success else f"answers {response.status_code}: {response.text[:200]}"


def _value_of(call: Call, group: str, place: str) -> Any:
    given = getattr(call, group)
    return at(given, place) if group == "body" else (given or {}).get(place, MISSING)


def _call_with(scene: Scene, operation: str, group: str, place: str) -> Call | None:
    calls = scene.calls(operation)
    return next((each for each in calls if _value_of(each, group, place) is not MISSING), None)


def _fault_of_value(scene: Scene, operation: str, group: str, place: str, value: Any) -> str | None:
    """Return what is wrong when a property is given: it is refused, or has no effect."""
    effects, way = EFFECTS.get(operation, {}), place
    while way and way not in effects:
        way = way.removesuffix("[]") if way.endswith("[]") else way.rpartition(".")[0]
    if way:
        return None if effects[way](scene, value) else "has no effect"
    call = _call_with(scene, operation, group, place)
    if call is None:
        return "no request has it"
    if value is not None:
        call = call.changed(group, place, value)
    response = scene.client.send(call)
    if not response.is_success:
        return _refusal(response)
    same = at(response.json(), place) == _value_of(call, group, place)
    return None if same else "is not in the answer"


def _violations(group: str, place: str, rules: Rules) -> Iterator[tuple[str, Any, str | None]]:
    """Yield kind, wrong value, and the parameter that the error should name, for each rule of a property.

    A wrong value that is a function makes one of the valid value.
    """
    param = str(steps_of(place)[0]) if place else None
    if place and rules.get("required"):
        yield "missing", MISSING, param
    if group == "body" and rules["types"]:
        yield "wrong type", next(each for each in _WRONG if not is_a(each, rules["types"])), param
    elif "integer" in rules["types"]:
        yield "wrong type", "text", param
    if "values" in rules:
        yield "other value", "none-of-these", param
    yield from ((kind, wrong, param) for kind, wrong in _out_of_bounds(rules))
    if rules.get("closed") and group == "body":
        yield "unknown field", lambda v: {**v, UNKNOWN: 1}, param or UNKNOWN
    elif rules.get("closed"):
        yield "unknown field", lambda v: v, UNKNOWN


def _out_of_bounds(rules: Rules) -> Iterator[tuple[str, Any]]:
    step = 0.1 if "number" in rules["types"] else 1
    if "minimum" in rules:
        yield "too small", rules["minimum"] - step
    if "maximum" in rules:
        yield "too large", rules["maximum"] + step
    if rules.get("fewest") and "array" in rules["types"]:
        yield "too few", []
    if "most" in rules:
        most = rules["most"] + 1
        yield "too many", lambda v: v * most if isinstance(v, list) else {f"key{n}": "a" for n in range(most)}
    if "longest" in rules:
        yield "too long", "x" * (rules["longest"] + 1)
    if "longest_key" in rules:
        yield "key too long", {"x" * (rules["longest_key"] + 1): "a"}


def _fault_of_refusal(
    scene: Scene, operation: str, group: str, place: str, wrong: Any, param: str | None
) -> str | None:
    """Return what is wrong with the answer to a request with a wrong value at a place."""
    call = _call_with(scene, operation, group, place) if place else scene.calls(operation)[0]
    if call is None:
        return "no request has it"
    if callable(wrong):
        if not place:
            # Of a form, another field; of a body, another object.
            call = call.changed(group, UNKNOWN, 1)
        else:
            call = call.changed(group, place, wrong(_value_of(call, group, place)))
    elif not place:
        call = Call(operation, call.path, body=wrong)
    else:
        call = call.changed(group, place, wrong)
    return fault_of(scene.client.send(call), 400, param)


def operation_cases(scene: Scene, limited: Recorder, operation: str, listed: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases of an operation as a whole: its documented errors.

    Args:
        scene: files and stores.
        limited: client of a service that takes no more of its requests for now.
        operation: the operation.
        listed: what the list says of it.
    """
    call = scene.calls(operation)[0]
    response = scene.client.send(call, headers={"Authorization": "Bearer pqt_unknown"})
    fault = fault_of(response, 401)
    if fault is None and response.json()["error"]["code"] != "invalid_api_key":
        fault = "has another `code` than `invalid_api_key`"
    yield Case(operation, "", "unknown key", fault)
    if "429" in listed["errors"]:
        # The first one may be let in again, the next one never.
        limited.send(call)
        refused = limited.send(call)
        yield Case(operation, "", "too many requests", fault_of(refused, 429))


def answer_cases(answers: list[Any], operation: str, listed: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases of the properties of an operation's answers."""
    taken = [rules for group in ("form", "body") for rules in listed.get(group, {}).items()]
    for place, rules in listed.get("answer", {}).items():
        if not place:
            continue
        # The schema lets `evals` be uploaded, and leaves it out of what such a file answers.
        more = [value for name, given in taken if name == place for value in given.get("values", ())]
        yield Case(operation, place, "answered", _fault_of_answers(answers, place, rules, more))


def _fault_of_answers(answers: list[Any], place: str, rules: Rules, more: list[Any]) -> str | None:
    found = [value for answer in answers for value in _all_at(answer, steps_of(place))]
    present = [value for value in found if value is not MISSING]
    if not present:
        return "is never answered"
    if rules.get("required") and len(present) < len(found):
        return "is missing"
    for value in present:
        if not is_a(value, rules["types"]):
            return f"is a {type(value).__name__}"
        if "values" in rules and value not in rules["values"] and value not in more:
            return f"is {value!r}"
        if isinstance(value, int | float) and not (rules.get("minimum", value) <= value <= rules.get("maximum", value)):
            return f"is {value!r}"
        if isinstance(value, list | dict) and len(value) > rules.get("most", len(value)):
            return f"has {len(value)} values"
    return None


def _all_at(value: Any, steps: list[str | int]) -> Iterator[Any]:
    """Yield the values at a place; `MISSING` where only the last step is missing."""
    if not steps:
        yield value
        return
    first, *others = steps
    if first == 0:
        for each in value if isinstance(value, list) else ():
            yield from _all_at(each, others)
    elif first == "*":
        for each in value.values() if isinstance(value, dict) else ():
            yield from _all_at(each, others)
    elif isinstance(value, dict):
        if first in value:
            yield from _all_at(value[first], others)
        elif not others:
            yield MISSING
