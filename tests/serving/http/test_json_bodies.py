"""Bodies of JSON are bounded in what they hold, whatever stands in their texts."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.http import json_bodies
from parquetry.serving.http.json_bodies import MOST_VALUES, JsonRoute, parsed, values_in
from parquetry.serving.http.problems import Problem
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.checks import problem
from tests.serving.http.test_rights import routes
from tests.workshop import Workshop

MEGABYTE = 1024 * 1024
RETRIEVE = "/api/v1/knowledge/default/retrieve"
values = st.recursive(
    st.none() | st.integers() | st.text('a",[{\\:', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('k"\\,', max_size=4), inner, max_size=4),
)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("bodies"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    # No request of these tests reaches the model service.
    upstream = {"base_url": "http://127.0.0.1:9/v1"}
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "upstream": upstream}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def marks_of(value):
    """Return the number of commas and opening brackets outside texts, from the value itself."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(0, len(value) - 1) + sum(map(marks_of, inner))


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 20])
@given(value=values)
def test_marks_in_texts_are_not_counted(block, value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bodies, "_BLOCK", block)
        assert values_in(json.dumps(value).encode()) == marks_of(value)


def test_large_text_full_of_marks_is_read():
    text = 'a "quoted", [bracketed], {braced} line\\\n' * 100_000
    assert parsed(json.dumps({"content": text}).encode()) == {"content": text}


@pytest.mark.parametrize("piece", [b"[],", b"{},", b"0,", b'"",', b'["\\\\"],'])
def test_large_body_of_many_values_is_refused_before_it_is_read(piece):
    body = b"[" + piece * (2 * MEGABYTE // len(piece)) + b"0]"
    with pytest.raises(Problem, match="more than 200,000 JSON values") as refused:
        parsed(body)
    assert (refused.value.status, refused.value.reason) == (413, "too-large")


def test_as_many_values_as_are_allowed_are_read():
    body = b"[" + b"0," * (MOST_VALUES - 1) + b"0]"
    assert len(parsed(body + b" " * 2 * MEGABYTE)) == MOST_VALUES


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"{'a': 1}",
        b'{"query": "\xff"}',
        b'{"query": "\\ud800"}',
        b'{"query": NaN}',
        b'{"query": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"query": 1' + b"0" * 5_000 + b"}",
        '{"query": "a"}'.encode("utf-16"),
    ],
    ids=["cut", "empty", "quotes", "latin-1", "surrogate", "nan", "deep", "long number", "utf-16"],
)
def test_what_is_no_json_is_refused_with_its_place(body):
    with pytest.raises(Problem, match=r"no JSON in UTF-8: .* line 1 column") as refused:
        parsed(body)
    assert (refused.value.status, refused.value.reason) == (422, "invalid-request")


@pytest.mark.parametrize("body", [b"{", b"", b'{"a": NaN}', b'{"a": "\xff"}', b"[" * 100_000])
def test_halves_of_characters_are_taken_where_a_dialect_takes_them(body):
    assert parsed(b'{"a": "\\ud800"}', halves=True) == {"a": "\ud800"}
    with pytest.raises(Problem, match="no JSON in UTF-8") as refused:
        parsed(body, halves=True)
    assert (refused.value.status, refused.value.reason) == (422, "invalid-request")


def test_byte_order_mark_is_skipped():
    assert parsed('\ufeff{"query": "a"}'.encode()) == {"query": "a"}


def test_every_route_with_a_body_reads_it_so(app):
    own = [route for _, path, route in routes(app) if path.startswith(("/api/", "/v1/"))]
    with_bodies = [route for route in own if isinstance(route, APIRoute) and route.body_field is not None]
    assert len(with_bodies) >= 12
    assert [route.path for route in with_bodies if not isinstance(route, JsonRoute)] == []


@pytest.mark.parametrize("path", [RETRIEVE, "/api/knowledge/documents", "/api/v1/jobs"])
def test_routes_refuse_such_bodies(app, path):
    many = b'{"query": "a", "more": [' + b"[]," * (MEGABYTE // 2) + b"0]}"
    with app.client() as client:
        headers = {"content-type": "application/json"}
        problem(client.post(path, content=many, headers=headers), 413, "too-large")
        for body in (b'{"query": "\\ud800"}', b"{", b'{"query": NaN}'):
            told = problem(client.post(path, content=body, headers=headers), 422, "invalid-request")
            assert "no JSON in UTF-8" in told["detail"]


def test_body_of_another_type_is_told_what_to_send(app):
    with app.client() as client:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        told = problem(client.post(RETRIEVE, content=b'{"query": "a"}', headers=headers), 422, "invalid-request")
        assert told["detail"] == "body: send a JSON object, with Content-Type: application/json"


OPENAI = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/vector_stores",
    "/v1/vector_stores/vs_1/search",
]


@pytest.mark.parametrize("path", OPENAI)
def test_openai_routes_refuse_such_bodies_in_their_form(app, path):
    token = app.resources.tokens.create(f"bodies {path}", rights=["search", "read", "write"])[1]
    many = b'{"query": "a", "more": [' + b"[]," * (MEGABYTE // 2) + b"0]}"
    with app.client(token) as client:
        for body, status, code in ((many, 413, "too_large"), (b"{", 400, "invalid_request")):
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            error = answer.json()["error"]
            assert (answer.status_code, error["type"], error["code"]) == (status, "invalid_request_error", code)
            assert error["message"]


@pytest.mark.parametrize("path", OPENAI)
def test_others_are_answered_while_a_large_body_is_read(app, path, monkeypatch):
    """The reading of the body ends only after another request was answered."""
    begun, answered = threading.Event(), threading.Event()
    order = []
    too_many = json_bodies._has_too_many

    def held(body):
        begun.set()
        assert answered.wait(60)
        return too_many(body)

    monkeypatch.setattr(json_bodies, "_has_too_many", held)
    token = app.resources.tokens.create(f"large {path}", rights=["search", "read", "write"])[1]

    def send_large():
        body = b'{"query": "a", "more": [' + b"[]," * (13 * MEGABYTE) + b"0]}"
        with app.client(token) as client:
            order.append(client.post(path, content=body, headers={"content-type": "application/json"}).status_code)

    with ThreadPoolExecutor() as pool, app.client(token) as client:
        large = pool.submit(send_large)
        assert begun.wait(60)
        order.append(client.get("/v1/files").status_code)
        answered.set()
        large.result(60)
    assert order == [200, 413]
