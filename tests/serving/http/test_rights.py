"""No route without rights: generated from the route table, asked over a real socket."""

import socket

import pytest
from fastapi.routing import APIRoute

from parquetry.serving.access.principals import RIGHTS
from parquetry.serving.http.callers import Requires
from parquetry.serving.http.dashboard.paths import PATHS, SIGN_IN, SIGN_OUT
from parquetry.serving.http.dashboard.paths import PUBLIC as DASHBOARD_PUBLIC
from parquetry.serving.http.health_routes import PUBLIC as HEALTH_PUBLIC
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.checks import problem
from tests.workshop import Workshop

DESCRIPTION = "/openapi.json"
"""the description of the routes, which names no data"""
PUBLIC = HEALTH_PUBLIC | DASHBOARD_PUBLIC
SESSION = (("POST", SIGN_IN), ("POST", SIGN_OUT))
"""routes without a right that take only forms of the dashboard itself"""

IDS = ("vector_store_id", "file_id", "batch_id", "upload_id", "version", "entry_id", "decision_id", "key")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Run an application that requires tokens, over a corpus."""
    workshop = Workshop(tmp_path_factory.mktemp("guarded"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"token_required": True}}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def routes(app):
    """Yield method, path and route of all that the application answers."""
    for included in app.app.routes:
        for route in included.original_router.routes if hasattr(included, "original_router") else [included]:
            if isinstance(route, APIRoute):
                for method in route.methods:
                    yield method, route.path, route
            else:
                assert route.path == DESCRIPTION, route


def right_of(route):
    """Return the right that a route needs; None if it needs none."""
    needed = [each.call.right for each in route.dependant.dependencies if isinstance(each.call, Requires)]
    assert len(needed) <= 1, route.path
    return needed[0] if needed else None


def refused(response, path, status, reason):
    """Check a refusal, in the form of the path's dialect."""
    if path == "/retrieval":
        # Dify looks for this status alone.
        assert response.status_code == 403, response.text
        assert response.json()["error_code"] == (1001 if reason == "token-missing" else 1002)
        return
    if any(path == each or (each != "/" and path.startswith(f"{each}/")) for each in PATHS):
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert f'data-reason="{reason}"' in response.text
        return
    if not path.startswith("/v1/"):
        problem(response, status, reason)
        return
    assert response.status_code == status, response.text
    code = {401: "invalid_api_key", 403: "insufficient_permissions"}[status]
    assert response.json()["error"]["code"] == code


def filled(path):
    path = path.replace("{path:path}", "fine_tuning/jobs").replace("{model:path}", "m")
    for name in ("namespace", "document_id", "job_id", "run_id", "response_id", "token_id", *IDS):
        path = path.replace("{" + name + "}", "default" if name == "namespace" else "none")
    path = path.replace("{number}", "1")
    assert "{" not in path
    return path


def test_every_route_but_health_needs_a_right(guarded):
    found = {path: right_of(route) for _, path, route in routes(guarded)}
    assert {path for path, right in found.items() if right is None} == PUBLIC
    assert len(found) >= 20


def test_without_a_token_nothing_is_answered(guarded):
    with guarded.client() as client:
        for method, path, _ in routes(guarded):
            response = client.request(method, filled(path), json={})
            if (method, path) in SESSION:
                refused(response, path, 403, "form-expired")
                continue
            if path in PUBLIC:
                assert response.status_code == 200, path
                continue
            refused(response, path, 401, "token-missing")
            assert response.headers["www-authenticate"] == "Bearer"


def test_what_does_not_exist_and_the_description_need_a_token_too(guarded):
    with guarded.client() as client:
        for path in ("/nowhere", DESCRIPTION, "/api/knowledge/documents/../../../etc/passwd"):
            problem(client.get(path), 401, "token-missing")


def test_body_of_a_stranger_is_not_read(guarded):
    host, port = guarded.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as stranger:
        stranger.sendall(
            b"POST /api/knowledge/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000000\r\n\r\n{"
        )
        assert b"401" in stranger.recv(4096)


@pytest.mark.slow
def test_token_without_the_right_is_refused_everywhere(guarded):
    for method, path, route in routes(guarded):
        needed = right_of(route)
        if needed is None:
            continue
        others = [right for right in RIGHTS if right not in (needed, "admin")]
        _, plain = guarded.resources.tokens.create("few", rights=others)
        with guarded.client(plain) as client:
            refused(client.request(method, filled(path), json={}), path, 403, "right-missing")


def test_revoked_token_is_refused_by_the_next_request(guarded):
    token, plain = guarded.resources.tokens.create("soon gone")
    with guarded.client(plain) as client:
        assert client.get("/api/knowledge/stats").status_code == 200
        guarded.resources.tokens.revoke(token.id)
        problem(client.get("/api/knowledge/stats"), 401, "token-revoked")


def test_namespace_that_a_token_does_not_see_does_not_exist(guarded):
    _, plain = guarded.resources.tokens.create("hr alone", namespaces=["hr"], rights=["search", "read", "write"])
    with guarded.client(plain) as client:
        problem(client.get("/api/knowledge/stats", params={"namespace": "default"}), 404, "no-such-namespace")
        problem(client.get("/api/v1/knowledge/default/documents"), 404, "no-such-namespace")
        problem(client.post("/api/v1/knowledge/default/retrieve", json={"query": "oak"}), 404, "no-such-namespace")
        never = client.get("/api/v1/knowledge/never-was/documents")
        told = problem(never, 404, "no-such-namespace")
        assert "default" not in told["detail"]
        assert client.get("/api/knowledge/stats").json()["agentId"] == "hr"


def test_strangers_are_refused_and_recorded_without_their_tokens(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("open"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    settings = parse_settings({"corpus": {"root": str(workshop.root / "corpus")}}, "test")
    with running_app(settings) as app, app.client("pqt_wrong") as client:
        problem(client.get("/api/knowledge/stats"), 401, "token-malformed")
        text = (app.resources.state / "audit.jsonl").read_text()
        assert "token-malformed" in text
        assert "pqt_wrong" not in text
    with running_app(settings) as app, app.client(Host="evil.example") as client:
        problem(client.get("/api/knowledge/stats"), 403, "host-not-allowed")
        problem(client.get("/health"), 403, "host-not-allowed")
        with app.client(Origin="http://evil.example") as page:
            problem(page.post("/api/knowledge/documents", json={}), 403, "origin-not-allowed")
