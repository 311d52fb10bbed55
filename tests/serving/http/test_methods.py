"""HEAD is answered wherever GET is, and what does not exist says what does."""

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.checks import ok, problem
from tests.serving.http.test_rights import filled, routes
from tests.workshop import Workshop


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("methods"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    with running_app(parse_settings({"corpus": {"root": str(workshop.root / "corpus")}}, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def test_head_is_get_without_a_body(app):
    with app.client() as client:
        for path in ("/health", "/ready", "/api/knowledge/stats", "/api/knowledge/documents", "/api/v1/jobs"):
            got, head = client.get(path), client.head(path)
            assert (head.status_code, head.content) == (200, b""), path
            assert head.headers["etag"] == got.headers["etag"], path
            assert head.headers["content-length"] == str(len(got.content)), path
        missing = client.head("/api/knowledge/documents/none")
        assert (missing.status_code, missing.content) == (404, b"")
        ok(client.get("/health"))


def test_every_path_names_all_its_methods(app):
    expected: dict[str, set[str]] = {}
    for method, path, _ in routes(app):
        if "{" not in path.removesuffix("}").rpartition("{")[2] and ":path" not in path:
            expected.setdefault(path, set()).add(method)
    assert expected["/api/knowledge/documents"] == {"GET", "POST"}
    with app.client() as client:
        for path in (
            "/api/knowledge/documents",
            "/api/v1/jobs",
            "/api/v1/knowledge/{namespace}/documents/{document_id}",
        ):
            methods = expected[path] | {"HEAD"}
            for method in ("PATCH", "OPTIONS", "TRACE", "MADEUP"):
                response = client.request(method, filled(path))
                told = problem(response, 405, "method-not-allowed")
                assert set(response.headers["allow"].split(", ")) == methods, path
                assert told["detail"].startswith(f"{method} is not possible here; GET and HEAD and ")


def test_path_that_does_not_exist_is_told(app):
    with app.client() as client:
        told = problem(client.get("/api/knowledge/serach"), 404, "not-found")
        assert told["detail"] == "there is nothing at '/api/knowledge/serach'; /openapi.json lists all paths"
