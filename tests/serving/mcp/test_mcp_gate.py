"""Refusals of the gate hold here as on every route, and a service that changes nothing remembers nothing."""

import pytest
from mcp.shared.exceptions import MCPError

from tests.servers.mcp_client import MODES, ask, call, over_http
from tests.serving.mcp.conftest import PEOPLE, opened

ACCEPT = {"Accept": "application/json, text/event-stream"}
MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
MOST = 20_000
"""bytes of a body"""


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """Run a read-only application on loopback, without a token for all, and with small bodies."""
    folder = tmp_path_factory.mktemp("narrow")
    with opened(folder, {"oak.md": "# Oak"}, read_only=True, max_body_bytes=MOST) as app:
        with app.resources.follower.reader(wait=60):
            pass
        app.plain = {name: app.resources.tokens.create(name, **given)[1] for name, given in PEOPLE.items()}
        yield app


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize(
    ("headers", "status", "reason"),
    [
        ({"Host": "evil.example"}, 403, "host-not-allowed"),
        ({"Origin": "http://evil.example"}, 403, "origin-not-allowed"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "origin-not-allowed"),
        ({"X-Forwarded-For": "10.0.0.1"}, 401, "token-missing"),
    ],
)
def test_pages_of_others_and_other_machines_are_refused(app, headers, status, reason):
    with app.client(**headers) as client:
        response = client.post("/mcp", json=MESSAGE, headers=ACCEPT)
    assert (response.status_code, response.json()["reason"]) == (status, reason)


def test_host_and_origin_that_the_gate_admits_are_not_refused_by_the_sdk(app):
    own = app.url.removeprefix("http://")
    for headers in ({}, {"Origin": app.url}, {"Host": f"kb.localhost:{own.partition(':')[2]}"}):
        with app.client(**headers) as client:
            response = client.post("/mcp", json=MESSAGE, headers=ACCEPT)
        assert response.status_code == 200, (headers, response.text)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_not_read(narrow, chunked):
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * MOST + b'"}'
    with narrow.client() as client:
        content = iter([body[:MOST], body[MOST:]]) if chunked else body
        response = client.post("/mcp", content=content, headers={**ACCEPT, "Content-Type": "application/json"})
    assert (response.status_code, response.json()["reason"]) == (413, "too-large")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'{"jsonrpc": "2.0"}', b"[" * 5000, b"\xff"])
@pytest.mark.parametrize("version", [None, "2026-07-28", "2025-06-18", "1999-01-01"])
def test_no_body_is_an_error_of_the_server(app, body, version):
    headers = {**ACCEPT, "Content-Type": "application/json"}
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    with app.client() as client:
        response = client.post("/mcp", content=body, headers=headers)
    assert 400 <= response.status_code < 500, response.text


@pytest.mark.parametrize("mode", MODES)
def test_remember_is_no_tool_of_a_service_that_changes_nothing(narrow, mode):
    for name in ("ada", "root"):
        assert "remember" not in ask(over_http(narrow.url, narrow.plain[name], mode), names)
    with pytest.raises(MCPError, match="there is no tool 'remember'"):
        call(over_http(narrow.url, narrow.plain["ada"], mode), "remember", text="The oak has four legs.")


@pytest.mark.parametrize("mode", MODES)
def test_remember_needs_a_token_although_the_operator_needs_none(app, mode):
    assert "remember" not in ask(over_http(app.url, None, mode), names)
    assert "remember" in ask(over_http(app.url, app.plain["ada"], mode), names)


def test_a_statement_that_takes_long_has_the_address_of_its_job(app):
    # Nothing carries jobs out here, and nothing is waited for.
    told = call(over_http(app.url, app.plain["ada"]), "remember", text="The oak has four legs.")
    assert told.structured_content["status"] == "pending"
    address = told.structured_content["job"]
    assert address in told.content[0].text
    with app.client(app.plain["ada"]) as client:
        assert client.get(address).json()["state"] == "queued"
    with app.client(app.plain["eve"]) as client:
        assert client.get(address).status_code == 404
