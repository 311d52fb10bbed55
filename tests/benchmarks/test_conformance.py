"""Files and vector stores conform with OpenAI's schema, by the committed list of its properties; so says the page."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from benchmarks.conditions import RESULTS
from benchmarks.conformance import PAGE, checked, page_of, result_of, running_services
from benchmarks.conformance_client import fault_of
from benchmarks.conformance_list import Schema
from benchmarks.conformance_rules import answer_cases

LEAST = 0.95
"""share of cases that conform"""
LISTED = {
    "answer": {
        "object": {"types": ["string"], "values": ["list"], "required": True},
        "data": {"types": ["array"], "required": True},
        "data[].score": {"types": ["number"], "minimum": 0, "maximum": 1, "required": True},
        "data[].note": {"types": ["null", "string"]},
    }
}
RIGHT = {"object": "list", "data": [{"score": 0.5, "note": None}, {"score": 1}]}


@pytest.mark.slow
def test_service_conforms(tmp_path: Path):
    with running_services(tmp_path) as services:
        cases = checked(*services)
    faults = [case for case in cases if case.fault is not None]
    assert len(cases) > 600
    assert len(faults) <= (1 - LEAST) * len(cases), faults


def test_page_says_what_was_measured():
    result = json.loads((RESULTS / "conformance.json").read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    assert page_of(page, result) == page
    assert result["conforming"] >= LEAST * result["cases"]


def test_answers_as_listed_conform():
    cases = list(answer_cases([RIGHT], "GET /x", LISTED))
    assert [(case.place, case.fault) for case in cases] == [(place, None) for place in LISTED["answer"]]
    assert result_of(cases)["conforming"] == len(cases)


@pytest.mark.parametrize(
    ("answer", "place", "fault"),
    [
        ({**RIGHT, "object": "set"}, "object", "is 'set'"),
        ({"data": []}, "object", "is missing"),
        ({**RIGHT, "data": {}}, "data", "is a dict"),
        ({**RIGHT, "data": [{"score": 0.5}, {"score": "1"}]}, "data[].score", "is a str"),
        ({**RIGHT, "data": [{"score": 0.5}, {"score": 1.5}]}, "data[].score", "is 1.5"),
        ({**RIGHT, "data": [{"score": 0.5}, {}]}, "data[].score", "is missing"),
        ({**RIGHT, "data": [{"score": True}]}, "data[].score", "is a bool"),
        ({**RIGHT, "data": [{"score": 1}]}, "data[].note", "is never answered"),
    ],
)
def test_answers_that_differ_do_not(answer, place, fault):
    found = {case.place: case.fault for case in answer_cases([RIGHT, answer], "GET /x", LISTED)}
    if fault == "is never answered":
        found = {case.place: case.fault for case in answer_cases([answer], "GET /x", LISTED)}
    assert found[place] == fault


ERROR = {"message": "no", "type": "invalid_request_error", "param": "limit", "code": "invalid_request"}


@pytest.mark.parametrize(
    ("status", "content", "fault"),
    [
        (400, {"error": ERROR}, None),
        (422, {"error": ERROR}, "answers 422, not 400"),
        (400, {"detail": "no"}, "answers no error object"),
        (400, {"error": {**ERROR, "message": None}}, "has no usable `message` in its error"),
        (400, {"error": {**ERROR, "param": "order"}}, "names 'order' as `param`"),
    ],
)
def test_error_conforms_by_status_form_and_parameter(status, content, fault):
    assert fault_of(httpx.Response(status, json=content), 400, "limit") == fault


def test_list_has_names_and_bounds_of_a_schema():
    size = {"type": "integer", "minimum": 1, "description": "text that is left out"}
    body = {"type": "object", "additionalProperties": False, "required": ["size"], "properties": {"size": size}}
    several = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Body"}}]}
    answer = {"type": "object", "properties": {"data": several}}
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer"}, "description": "between 1 and 1,000."}
    operation = {
        "parameters": [limit],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}},
        "responses": {"200": {"content": {"application/json": {"schema": answer}}}, "429": {}},
    }
    schema = Schema({"paths": {"/files": {"post": operation}}, "components": {"schemas": {"Body": body}}})
    ((name, found),) = schema.operations()
    listed = schema.listed(found)
    assert name == "POST /files"
    assert listed["query"] == {"limit": {"types": ["integer"], "minimum": 1, "maximum": 1000}}
    assert listed["body"]["size"] == {"types": ["integer"], "minimum": 1, "required": True}
    assert listed["body"][""] == {"types": ["object"], "closed": True, "required": True}
    assert listed["answer"]["data"]["types"] == ["array", "string"]
    assert listed["answer"]["data[].size"]["required"]
    assert listed["errors"] == ["429"]
