"""Answers are checked and written in the call of a thread that found them."""

from contextvars import ContextVar

import pytest
from fastapi import APIRouter, FastAPI, Response
from fastapi.exceptions import ResponseValidationError
from pydantic import BaseModel, Field, field_validator
from starlette.testclient import TestClient

from parquetry.serving.http.json_bodies import JsonRoute

CALL = ContextVar("call", default=None)
"""set in a call of a thread, and seen in this call only"""
CHECKED = []


class Found(BaseModel):
    """An answer."""

    number: int = Field(alias="theNumber")
    note: str | None = None

    @field_validator("number")
    @classmethod
    def _seen(cls, number):
        CHECKED.append(CALL.get())
        return number


def answer(kind: str = "dict"):
    CALL.set(kind)
    return {
        "dict": {"theNumber": 7, "note": None},
        "wrong": {"theNumber": "seven"},
        "response": Response("as it is", 202, media_type="text/plain"),
    }[kind]


@pytest.fixture(params=["once", "twice"])
def client(request):
    router = APIRouter(route_class=JsonRoute)
    router.get("/found", response_model=Found, status_code=201)(answer)
    router.get("/unset", response_model=Found, response_model_exclude_unset=True)(lambda: {"theNumber": 7})
    router.get("/none")(lambda: None)

    @router.get("/async")
    async def found() -> Found:
        return Found(theNumber=8)

    if request.param == "twice":
        outer = APIRouter(route_class=JsonRoute)
        outer.include_router(router)
        router = outer
    app = FastAPI()
    app.include_router(router)
    with TestClient(app) as client:
        CHECKED.clear()
        yield client


def test_answer_is_checked_and_written_where_it_was_found(client):
    response = client.get("/found")
    assert (response.status_code, response.json()) == (201, {"theNumber": 7, "note": None})
    assert response.headers["content-type"] == "application/json"
    assert CHECKED == ["dict"]


def test_options_of_the_route_count(client):
    assert client.get("/unset").text == '{"theNumber":7}'
    assert client.get("/none").json() is None
    assert client.get("/async").json() == {"theNumber": 8, "note": None}


def test_answer_that_is_a_response_is_sent_as_it_is(client):
    response = client.get("/found", params={"kind": "response"})
    assert (response.status_code, response.text) == (202, "as it is")


def test_answer_of_the_wrong_form_is_an_error_of_the_service(client):
    with pytest.raises(ResponseValidationError):
        client.get("/found", params={"kind": "wrong"})


def test_schema_names_the_answer(client):
    schema = client.get("/openapi.json").json()["paths"]["/found"]["get"]
    assert schema["responses"]["201"]["content"]["application/json"]["schema"]["$ref"].endswith("/Found")
    assert [each["name"] for each in schema["parameters"]] == ["kind"]
