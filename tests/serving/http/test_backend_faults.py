"""A fault in every backend call in turn is always a 5xx with a reason, never an answer with nothing in it."""

import pytest

from parquetry.serving.http.dialects import dialect_of
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.backend_faults import ERRORS, Backend
from tests.serving.http.test_rights import routes
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

FINAL = {"/health", "/ready", "/metrics"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("faults"))
    workshop.write("oak.md", "# Oak\n\nAn oak table.")
    workshop.refresh()
    # Nothing carries jobs out here: a write is answered with the address of its job.
    serve = {"wait_seconds": 0.01}
    with running_app(
        parse_settings({"corpus": {"root": str(workshop.root / "corpus")}, "serve": serve}, "test")
    ) as app:
        with app.resources.follower.reader(wait=60) as reader:
            (row,) = reader.documents()
        app.document = row["document_id"]
        app.run = row["run_id"]
        app.job = app.resources.jobs.submit("refresh", None, {}, {}).id
        yield app


def requests(app):
    """Return a valid request for every route: method, path, options."""
    document = {"content": "An ash bench.", "filename": "ash.md"}
    texts = {"documents": [{"text": "An elm stool.", "source": "elm.md"}]}
    session = {"session_id": "s1", "messages": [{"role": "user", "content": "Tea, please."}], "user_id": "ada"}
    feedback = {"query": "oak", "document_id": app.document, "relevant": True}
    bodies = {
        ("POST", "/api/knowledge/documents"): document,
        ("POST", "/api/v1/knowledge/{namespace}/documents"): texts,
        ("POST", "/api/v1/knowledge/{namespace}/retrieve"): {"query": "oak table", "load": "full", "fields": "all"},
        ("POST", "/api/v1/jobs"): {"kind": "refresh"},
        ("POST", "/api/v1/sessions"): session,
        ("POST", "/api/v1/feedback"): feedback,
        ("POST", "/retrieval"): {"knowledge_id": "default", "query": "oak", "retrieval_setting": {"top_k": 2}},
    }
    # These ask another service, or speak another protocol, in tests of their own.
    left_out = {"/api/knowledge/documents/url", "/api/v1/knowledge/{namespace}/query", "/mcp"}
    for method, path, _ in routes(app):
        # OpenAI's dialect and the dashboard have tests of their own.
        if path in left_out | FINAL or path.startswith("/v1/") or dialect_of(path).sign_in is not None:
            continue
        filled = path.replace("{namespace}", "default").replace("{document_id}", app.document)
        filled = filled.replace("{run_id}", app.run).replace("{job_id}", app.job)
        params = {"q": "oak table", "threshold": 0} if path.endswith("/search") else {}
        yield method, filled, {"json": bodies.get((method, path)), "params": params}


def test_every_route_answers_without_a_fault(app):
    with app.client() as client:
        for method, path, options in requests(app):
            response = client.request(method, path, **options)
            assert response.status_code in (200, 201, 202), (method, path, response.text)


@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_fault_in_any_backend_call_is_told(app, kind):
    tried = 0
    for method, path, options in requests(app):
        backend = Backend(app)
        try:
            with app.client() as client:
                response = client.request(method, path, **options)
                assert response.is_success, (method, path, response.text)
                for call in sorted(set(backend.calls)):
                    with backend.failing(call, ERRORS[kind]()):
                        response = client.request(method, path, **options)
                    where = (method, path, call, response.text)
                    assert response.status_code >= 500, where
                    told = response.json()
                    if path == "/retrieval":
                        assert told["error_code"] >= 500, where
                    else:
                        assert response.headers["content-type"] == "application/problem+json", where
                        assert told["reason"], where
                    assert "secret detail" not in response.text, where
                    tried += 1
                response = client.request(method, path, **options)
                assert response.is_success, (method, path, response.text)
        finally:
            backend.restore()
    assert tried >= 40
