"""Each dialect answers errors in its own form, wherever on their way requests fail."""

from __future__ import annotations

import json
import pickle

import pytest

from parquetry.serving.access.refusals import UnusableParameter
from parquetry.serving.http.dialects import dialect_of, error_response
from parquetry.serving.http.problems import Problem
from parquetry.settings.sections import CorpusSettings, ServeSettings, Settings
from tests.servers.http_app import running_app


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """Return an application without a corpus that wants tokens."""
    root = tmp_path_factory.mktemp("dialects")
    serve = ServeSettings(token_required=True, state=str(root / "state"), max_body_bytes=2048)
    with running_app(Settings(corpus=CorpusSettings(root=str(root / "corpus")), serve=serve)) as running:
        yield running


@pytest.mark.parametrize("path", ["/v1", "/v1/files", "/v1/vector_stores/vs_1/search"])
def test_openais_paths_speak_its_dialect(path):
    assert dialect_of(path).foreign_bearers


@pytest.mark.parametrize("path", ["/v10", "/v1x/files", "/api/v1/jobs", "/health", "/searches"])
def test_other_paths_speak_the_services_own(path):
    assert not dialect_of(path).foreign_bearers
    assert json.loads(error_response(path, Problem(404, "no-such-job", "no job")).body)["reason"] == "no-such-job"


@pytest.mark.parametrize("path", ["/", "/search", "/documents/none", "/add"])
def test_paths_of_the_dashboard_speak_html(path):
    assert dialect_of(path).sign_in is not None
    answer = error_response(path, Problem(404, "no-such-job", "no <b>job</b>"))
    assert answer.media_type == "text/html"
    assert b'data-reason="no-such-job"' in answer.body
    assert b"no &lt;b&gt;job&lt;/b&gt;" in answer.body


@pytest.mark.parametrize(
    ("problem", "status", "error"),
    [
        (
            Problem(422, "invalid-request", "query: missing", param="query"),
            400,
            {"type": "invalid_request_error", "param": "query", "code": "invalid_request"},
        ),
        (Problem(404, "no-such-file", "no file"), 404, {"type": "invalid_request_error", "code": "not_found"}),
        (Problem(429, "rate-limited", "slow down"), 429, {"type": "requests", "code": "rate_limit_exceeded"}),
        (Problem(503, "not-ready", "not yet"), 503, {"type": "server_error", "code": "not_ready"}),
    ],
)
def test_an_error_has_openais_form_and_status(problem, status, error):
    answer = error_response("/v1/files", problem)
    assert answer.status_code == status
    assert json.loads(answer.body) == {"error": {"message": problem.detail, "param": None, **error}}
    assert ("retry-after" in answer.headers) == (status in (429, 503))


def test_a_request_without_a_token_is_refused_in_the_form_of_its_dialect(app):
    """The refusal comes from a middleware, before any route is known."""
    with app.client() as client:
        openai, own = client.get("/v1/files"), client.get("/api/v1/jobs")
    assert openai.status_code == own.status_code == 401
    assert openai.json()["error"]["code"] == "invalid_api_key"
    assert own.json()["reason"] == "token-missing"


def test_a_key_of_another_service_is_no_token_of_this_one(app):
    with app.client("sk-other") as client:
        refused = client.get("/v1/files")
        foreign = client.get("/api/v1/jobs")
    assert refused.status_code == 401
    assert "pqt_" in refused.json()["error"]["message"]
    assert foreign.json()["reason"] == "token-foreign"


def test_headers_that_are_too_large_are_refused_in_the_form_of_the_dialect(app):
    with app.client(None, **{"X-Long": "x" * 17_000}) as client:
        refused = client.get("/v1/files")
    assert refused.status_code == 431
    assert refused.json()["error"]["code"] == "headers_too_large"


def test_a_refused_parameter_is_named_in_the_dialects_that_name_it():
    refused = UnusableParameter("unsupported-parameter", "input[0].type is not supported", "input[0].type")
    error = json.loads(error_response("/v1/responses", refused).body)["error"]
    assert (error["param"], error["code"]) == ("input[0].type", "unsupported_parameter")
    assert json.loads(error_response("/api/v1/jobs", refused).body)["status"] == 422
    assert pickle.loads(pickle.dumps(refused)).param == "input[0].type"
