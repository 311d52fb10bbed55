"""Bodies of `/mcp` are bounded in size, time, depth and values; each refusal has its code and says what is wrong."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mcp_types import INVALID_PARAMS

from parquetry.plural import size_of
from parquetry.serving.http import json_bodies
from parquetry.serving.http.body_limits import MCP_BYTES
from tests.servers.mcp_client import MODES, call, failed, over_http
from tests.serving.mcp.conftest import PEOPLE, opened

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
VERSIONS = [None, "2025-06-18", "2026-07-28"]
MEGABYTE = 1024 * 1024
SECONDS = 1.0


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """Run an application that waits a second for a body."""
    with opened(tmp_path_factory.mktemp("bodies"), {"oak.md": "# Oak\n\nAn oak table."}, body_seconds=SECONDS) as app:
        with app.resources.follower.reader(wait=60):
            pass
        app.plain = app.resources.tokens.create("ada", **PEOPLE["ada"])[1]
        yield app


def sent(app, content, version=None):
    headers = HEADERS if version is None else {**HEADERS, "MCP-Protocol-Version": version}
    with app.client(app.plain) as client:
        return client.post("/mcp", content=content, headers=headers)


def message(arguments, name="search_knowledge"):
    """Return a call of a tool, with its arguments as JSON."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    head = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "_meta": meta, "arguments": 0}}
    return json.dumps(head).replace('"arguments": 0', f'"arguments": {arguments}').encode()


def answered(app, arguments, version):
    """Return the answer of the service to a call, sent as clients of each generation send it."""
    headers = {**HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "search_knowledge"}
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    with app.client(app.plain) as client:
        return client.post("/mcp", content=message(arguments), headers=headers)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
def test_a_message_larger_than_any_is_refused(hasty, chunked, version):
    query = b"x" * MCP_BYTES
    body = message('{"query": "' + query.decode() + '"}')
    content = iter([body[: MEGABYTE * n] for n in (0, 1)] + [body[MEGABYTE:]]) if chunked else body
    response = sent(hasty, content, version)
    assert (response.status_code, response.json()["reason"]) == (413, "too-large")
    assert size_of(MCP_BYTES) in response.json()["detail"]


def test_a_message_below_the_bound_reaches_its_tool(hasty):
    response = answered(hasty, '{"query": "' + "x" * (MCP_BYTES - 4096) + '"}', "2025-06-18")
    assert response.status_code == 200
    assert "query: String should have at most 32768 characters" in response.text


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_of_very_many_values_is_refused_before_it_is_read(hasty, version, monkeypatch):
    counted = threading.Event()
    too_many = json_bodies._has_too_many

    def seen(body):
        counted.set()
        return too_many(body)

    monkeypatch.setattr(json_bodies, "_has_too_many", seen)
    many = "[" + "[]," * (MEGABYTE // 3 * 2) + "0]"
    response = sent(hasty, message('{"query": "oak", "filters": {"tags": ' + many + "}}"), version)
    assert (response.status_code, response.json()["reason"]) == (413, "too-large")
    assert "200,000 JSON values" in response.json()["detail"]
    assert counted.is_set()


def test_others_are_answered_while_the_values_of_a_message_are_counted(hasty, monkeypatch):
    """The counting ends only after another message was answered."""
    begun, answered_other = threading.Event(), threading.Event()
    order = []
    too_many = json_bodies._has_too_many

    def held(body):
        begun.set()
        assert answered_other.wait(60)
        return too_many(body)

    monkeypatch.setattr(json_bodies, "_has_too_many", held)
    many = message('{"query": "oak", "more": [' + "[]," * (MEGABYTE // 3 * 2) + "0]}")
    with ThreadPoolExecutor() as pool:
        large = pool.submit(lambda: order.append(sent(hasty, many).status_code))
        assert begun.wait(60)
        order.append(answered(hasty, '{"query": "oak"}', "2025-06-18").status_code)
        answered_other.set()
        large.result(60)
    assert order == [200, 413]


@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
def test_a_message_that_does_not_arrive_is_given_up(hasty, chunked):
    host, port = hasty.url.removeprefix("http://").split(":")
    length, begin = ("Transfer-Encoding: chunked", b"1\r\n{\r\n") if chunked else ("Content-Length: 100", b"{")
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {hasty.plain}\r\n"
    head += f"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode() + begin)
        answer = b""
        while block := connection.recv(65_536):
            answer += block
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 408 " in head.splitlines()[0]
    assert json.loads(body)["reason"] == "too-slow"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("depth", [150, 900, 5_000, MEGABYTE])
@pytest.mark.parametrize("place", ["arguments", "filters", "message"])
def test_a_message_of_any_depth_is_refused_as_the_callers_fault(hasty, place, depth, version):
    deep = "[" * depth + "]" * depth
    arguments = {"arguments": deep, "filters": '{"query": "oak", "filters": {"metadata": {"a": ' + deep + "}}}"}
    response = sent(hasty, deep.encode(), version) if place == "message" else answered(hasty, arguments[place], version)
    assert response.status_code < 500, response.text
    told = response.json()
    if depth == MEGABYTE:
        assert (response.status_code, told["reason"]) == (413, "too-large")
    elif "error" in told:
        assert -32800 < told["error"]["code"] <= -32600, told
        assert told["error"]["code"] != -32603, told
        assert len(response.text) < 4_000
    else:
        assert told["result"]["isError"], told
        (content,) = told["result"]["content"]
        assert content["text"].startswith(("filters", "arguments")), told
    assert answered(hasty, '{"query": "oak"}', version).json()["result"]["isError"] is False


WRONG = [
    ({"query": 7}, "query: Input should be a valid string"),
    ({"query": None}, "query: Input should be a valid string"),
    ({"query": ["oak"]}, "query: Input should be a valid string"),
    ({"query": ""}, "query: String should have at least 1 character"),
    ({}, "query: Field required"),
    ({"query": "oak", "top_k": "many"}, "top_k: Input should be a valid integer"),
    ({"query": "oak", "top_k": 0}, "top_k: Input should be greater than or equal to 1"),
    ({"query": "oak", "top_k": 1e300}, "top_k: "),
    ({"query": "oak", "filters": []}, "filters: "),
    ({"query": "oak", "filters": {"tags": {"a": 1}}}, "filters.tags: "),
    ({"query": "oak", "namespace": 5}, "namespace: "),
    ({"query": "oak", "include_sources": []}, "include_sources: "),
    ({"query": "oak", "shell": "rm"}, "shell: there is no such argument"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("arguments", "told"), WRONG, ids=[json.dumps(each)[:40] for each, _ in WRONG])
def test_an_argument_of_a_wrong_type_is_named(hasty, arguments, told, mode):
    line = failed(call(over_http(hasty.url, hasty.plain, mode), "search_knowledge", **arguments))
    assert line.startswith(told)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("arguments", ["5", '"oak"', "[]", "true"])
def test_arguments_that_are_no_object_are_refused(hasty, arguments, version):
    response = answered(hasty, arguments, version)
    assert response.status_code < 500
    assert response.json()["error"]["code"] in (INVALID_PARAMS, -32600), response.text
