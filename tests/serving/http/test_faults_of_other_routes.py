"""Faults behind the routes that ask a language model or are passed on; and no route without a test of its faults."""

import json
import re

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.servers.model_service import ModelAnswer, ModelService, said, whole
from tests.serving.http.backend_faults import ERRORS, Backend, each_failing
from tests.serving.http.test_rights import routes
from tests.workshop import Workshop

PASSED_ON = ("GET", "POST", "PUT", "PATCH", "DELETE")


def answer(asked):
    if asked.path == "/oak.html":
        return ModelAnswer((b"<p>An oak table of the web.</p>",), headers={"Content-Type": "text/html"})
    if asked.path == "/robots.txt":
        return whole({}, 404)
    return said("An oak table [1].") if asked.path.endswith("/chat/completions") else whole({"object": "thing"})


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("faults"))
    workshop.write("oak.md", "# Oak\n\nAn oak table.")
    workshop.refresh()
    with ModelService(rule=answer) as service:
        tables = {
            "corpus": {"root": str(workshop.root / "corpus")},
            # Nothing carries jobs out here.
            "serve": {"wait_seconds": 0.01},
            "upstream": {"base_url": service.base_url, "api_key": "sk-own-key-of-the-service"},
            "uploads": {"allow": [f"127.0.0.1:{service.port}"]},
            "llm": {"model": "m", "base_url": service.base_url, "api_key": "sk-own-key-of-the-model"},
        }
        with running_app(parse_settings(tables, "test")) as app:
            with app.resources.follower.reader(wait=60):
                pass
            app.page = f"{service.url}/oak.html"
            app.token = app.resources.tokens.create("root", rights=["admin"])[1]
            yield app


REQUESTS = {
    "query": ("POST", "/api/v1/knowledge/default/query", {"question": "Which table is there?"}),
    "import of a page": ("POST", "/api/knowledge/documents/url", {"url": "PAGE"}),
    "embeddings": ("POST", "/v1/embeddings", {"model": "wordllama", "input": "oak"}),
    "model": ("GET", "/v1/models/wordllama", None),
    "reindex": ("POST", "/reindex", None),
    "files": ("GET", "/files", None),
    "metrics": ("GET", "/metrics", None),
    **{f"passed on, {method}": (method, "/v1/things", {} if method != "GET" else None) for method in PASSED_ON},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(ERRORS))
@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_fault_in_any_backend_call_is_told(app, name, kind):
    method, path, body = REQUESTS[name]
    body = {"url": app.page} if body == {"url": "PAGE"} else body
    tried = 0
    with app.client(app.token) as client:
        for call, response in each_failing(app, lambda: client.request(method, path, json=body), ERRORS[kind]):
            where = (call, response.status_code, response.text)
            assert response.status_code >= 500, where
            told = response.json()
            assert told["error"]["message"] if path.startswith("/v1") else told["reason"], where
            assert "secret detail" not in response.text, where
            tried += 1
    assert tried >= 1


ELSEWHERE = {
    "test_backend_faults.py": r"/api/.*|/retrieval|/reindex|/files",
    "stores/test_store_faults.py": r"/v1/(files|uploads|vector_stores)(/.*)?",
    "chat/test_backend_faults.py": r"/v1/(chat/completions|models(/.*)?|embeddings)",
    "responses/test_response_faults.py": r"/v1/responses(/.*)?",
    "mcp/test_mcp_faults.py": r"/mcp",
    "test_faults_of_other_routes.py": r"/v1/{path:path}|/metrics",
    "../web/test_page_faults.py": r"/|/(search|ask|documents|add|entries|runs|map|quality|admin|sign-(in|out))(/.*)?",
    "no backend call: files of the pages": r"/static/.*",
    "no backend call: they tell the state of the service": r"/health|/ready",
}
"""file of tests -> routes whose faults it has; those of a family are compared with the route table there"""


def test_no_route_is_without_a_test_of_its_faults(app):
    for method, path, _ in routes(app):
        homes = [name for name, pattern in ELSEWHERE.items() if re.fullmatch(pattern, path)]
        assert len(homes) == 1, (method, path, homes)


def test_state_of_the_service_needs_no_backend_call_but_the_gates(app):
    """So a fault shows in what it says, and not in whether there is an answer."""
    backend = Backend(app)
    try:
        with app.client() as client:
            for path in ("/health", "/ready"):
                assert json.loads(client.get(path).content)
        assert set(backend.calls) == {"gate.screen"}
    finally:
        backend.restore()
