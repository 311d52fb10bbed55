"""Dify's external knowledge API, over a real socket: records, thresholds, conditions, and errors in Dify's form."""

import json

import pytest

from parquetry.errors import StorageError
from parquetry.serving.http.dify.conditions import OPERATORS
from parquetry.settings.sections import parse_settings
from tests.servers.chat_server import error
from tests.servers.http_app import running_app
from tests.servers.rerank_server import RerankServer
from tests.serving.http.backend_faults import Backend
from tests.serving.http.checks import ok
from tests.workshop import Workshop

TEXTS = {
    "leave.md": "---\ntitle: Leave\nstatus: final\nyear: 2031\nsecret: x\ntopics: [holiday, moving]\n---\n"
    "# Leave\n\nEverybody has thirty days of holiday.\n",
    "draft.md": "---\nstatus: draft\nyear: 2029\nvalid: 2030-06-01\n---\nHoliday of thirty days, says the draft.\n",
    "note.md": "Thirty days of holiday were discussed.\n",
}
ALL = set(TEXTS)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """Run an application that requires tokens."""
    workshop = Workshop(tmp_path_factory.mktemp("dify"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    settings = {
        "corpus": {"root": str(workshop.root / "corpus")},
        "serve": {"token_required": True},
        "metadata_denylists": {"knowledge": ["secret"]},
    }
    with running_app(parse_settings(settings, "test")) as running:
        with running.resources.follower.reader(wait=60):
            pass
        yield running


@pytest.fixture(scope="module")
def token(app):
    return app.resources.tokens.create("dify", rights=["search"])[1]


@pytest.fixture
def client(app, token):
    with app.client(token) as client:
        yield client


def asked(knowledge="default", query="days of holiday", condition=None, **setting):
    """Return a request as Dify sends it."""
    return {
        "retrieval_setting": {"top_k": 5, "score_threshold": 0.0, **setting},
        "query": query,
        "knowledge_id": knowledge,
        "metadata_condition": condition,
    }


def one(name, operator, value=None):
    return {"conditions": [{"name": name, "comparison_operator": operator, "value": value}]}


def files(response):
    return {each["metadata"]["filename"] for each in ok(response)["records"]}


def failure(response, status, code):
    """Return the message of an error in Dify's form."""
    assert response.status_code == status, response.text
    told = response.json()
    assert told.keys() == {"error_code", "error_msg"}
    assert told["error_code"] == code
    return told["error_msg"]


def test_records_are_the_chunks_best_first_with_their_place(client):
    records = ok(client.post("/retrieval", json=asked()))["records"]
    assert {each["metadata"]["filename"] for each in records} == ALL
    scores = [each["score"] for each in records]
    assert all(0 <= score <= 1 for score in scores)
    (leave,) = [each for each in records if each["metadata"]["filename"] == "leave.md"]
    assert leave.keys() == {"content", "score", "title", "metadata"}
    assert leave["title"] == "Leave"
    assert "thirty days" in leave["content"]
    assert leave["metadata"]["year"] == 2031
    assert leave["metadata"]["document_id"]
    assert "secret" not in leave["metadata"]


def test_number_and_least_score_are_obeyed(client):
    assert len(ok(client.post("/retrieval", json=asked(top_k=1)))["records"]) == 1
    every = ok(client.post("/retrieval", json=asked()))["records"]
    least = sorted(each["score"] for each in every)[1]
    kept = ok(client.post("/retrieval", json=asked(score_threshold=least)))["records"]
    assert [each["score"] for each in kept] == [each["score"] for each in every if each["score"] >= least]
    assert ok(client.post("/retrieval", json=asked(query="goalkeeper penalty", score_threshold=0.9)))["records"] == []


CONDITIONS = [
    ("status", "contains", "fin", {"leave.md"}),
    ("status", "not contains", "fin", {"draft.md", "note.md"}),
    ("status", "start with", "dr", {"draft.md"}),
    ("status", "end with", "al", {"leave.md"}),
    ("status", "is", "draft", {"draft.md"}),
    ("topics", "contains", "moving", {"leave.md"}),
    ("status", "is not", "draft", {"leave.md", "note.md"}),
    ("status", "in", ["draft", "final"], {"draft.md", "leave.md"}),
    ("status", "in", "draft, other", {"draft.md"}),
    ("status", "not in", ["draft", "other"], {"leave.md", "note.md"}),
    ("status", "empty", None, {"note.md"}),
    ("status", "not empty", None, {"leave.md", "draft.md"}),
    ("year", "=", 2031, {"leave.md"}),
    ("year", "=", "2031", {"leave.md"}),
    ("year", "≠", 2031, {"draft.md", "note.md"}),
    ("year", ">", 2029, {"leave.md"}),
    ("year", "<", 2031, {"draft.md"}),
    ("year", "≥", 2029, {"leave.md", "draft.md"}),
    ("year", "≤", 2029, {"draft.md"}),
    ("valid", "before", "2030-06-02", {"draft.md"}),
    ("valid", "before", "2030-06-01", set()),
    ("valid", "after", "2030-05-31T22:00:00-01:00", {"draft.md"}),
    ("valid", "after", 0, {"draft.md"}),
    # For conditions, no document has what nobody may see.
    ("secret", "is", "x", set()),
    ("secret", "empty", None, ALL),
    ("secret", "is not", "x", ALL),
    (["status", "topics"], "contains", "moving", {"leave.md"}),
    (["status", "topics"], "not contains", "moving", {"draft.md", "note.md"}),
]


@pytest.mark.parametrize(("name", "operator", "value", "found"), CONDITIONS)
def test_every_operator_of_dify_finds_what_it_says(client, name, operator, value, found):
    assert files(client.post("/retrieval", json=asked(condition=one(name, operator, value)))) == found


def test_no_operator_is_left_out():
    assert {operator for _, operator, _, _ in CONDITIONS} == set(OPERATORS)


@pytest.mark.parametrize(("joined", "found"), [("and", set()), ("or", {"leave.md", "draft.md"}), (None, set())])
def test_conditions_are_joined_as_asked(client, joined, found):
    both = {"conditions": one("year", "=", 2031)["conditions"] + one("status", "is", "draft")["conditions"]}
    if joined:
        both["logical_operator"] = joined
    assert files(client.post("/retrieval", json=asked(condition=both))) == found


@pytest.mark.parametrize("condition", [None, {}, {"conditions": []}, {"conditions": None}])
def test_no_conditions_are_none(client, condition):
    assert files(client.post("/retrieval", json=asked(condition=condition))) == ALL


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (one("status", "like", "x"), "'like' is not one of: contains, not contains"),
        (one("status", "is"), "'is' needs a value"),
        (one("status", "is", ["a", "b"]), "not with a list"),
        (one("year", ">", "many"), "compares with a number"),
        (one("year", ">", True), "compares with a number"),
        (one("valid", "before", "tomorrow"), "compares with a date"),
        (one("a..b", "is", "x"), "is not the name"),
        (one([], "is", "x"), "is not the name"),
        (one("status", "is", {"a": 1}), "metadata_condition.conditions.0.value"),
        ({**one("status", "is", "x"), "logical_operator": "xor"}, "logical_operator"),
    ],
)
def test_a_condition_that_cannot_be_met_as_asked_is_refused_and_never_ignored(client, condition, message):
    assert message in failure(client.post("/retrieval", json=asked(condition=condition)), 422, 422)


def test_a_registration_in_dify_tells_a_right_key_from_a_wrong_one(app, client):
    """Dify sends no body then, and takes anything for success but 403, 404 and 502."""
    assert client.post("/retrieval").status_code == 422
    with app.client("pqt_wrong") as wrong:
        assert wrong.post("/retrieval").status_code == 403


@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        (None, 1001, "send a token"),
        ("Bearer sk-dify", 1001, "has to hold a token of this service"),
        ("pqt_abc", 1001, "has to hold a token of this service"),
        ("Bearer pqt_wrong", 1002, "incomplete or mistyped"),
    ],
)
def test_a_wrong_key_is_told_apart_from_a_wrong_header(app, header, code, message):
    with app.client(**({} if header is None else {"Authorization": header})) as stranger:
        assert message in failure(stranger.post("/retrieval", json=asked()), 403, code)


def test_a_token_without_the_right_or_revoked_is_not_authorized(app):
    made, plain = app.resources.tokens.create("reads alone", rights=["read"])
    with app.client(plain) as client:
        assert "search" in failure(client.post("/retrieval", json=asked()), 403, 1002)
        app.resources.tokens.revoke(made.id)
        assert "revoked" in failure(client.post("/retrieval", json=asked()), 403, 1002)


def test_hidden_and_missing_knowledge_are_the_same(app, client):
    missing = failure(client.post("/retrieval", json=asked("nowhere")), 404, 2001)
    _, plain = app.resources.tokens.create("hr alone", rights=["search"], namespaces=["hr"])
    with app.client(plain) as other:
        hidden = failure(other.post("/retrieval", json=asked()), 404, 2001)
        assert failure(other.post("/retrieval", json=asked("hr")), 404, 2001) == "no namespace 'hr'"
    assert missing.replace("nowhere", "default") == hidden
    assert failure(client.post("/retrieval", json=asked("a/b")), 404, 2001)


@pytest.mark.parametrize(
    "change",
    [
        {"query": ""},
        {"query": None},
        {"retrieval_setting": None},
        {"retrieval_setting": {"top_k": 0}},
        {"knowledge_id": 7},
    ],
)
def test_a_request_that_does_not_fit_is_told_with_the_field(client, change):
    (name,) = change
    assert name in failure(client.post("/retrieval", json={**asked(), **change}), 422, 422)


def test_fields_that_dify_adds_are_ignored(client):
    assert files(client.post("/retrieval", json={**asked(), "user": "u-1"})) == ALL


def test_failures_of_the_service_have_difys_form(app, client):
    backend = Backend(app)
    try:
        assert ok(client.post("/retrieval", json=asked(query="holiday days")))
        calls = sorted(set(backend.calls))
        assert calls
        for call in calls:
            with backend.failing(call, StorageError("the corpus cannot be read")):
                failure(client.post("/retrieval", json=asked(query=f"holiday {call}")), 503, 503)
    finally:
        backend.restore()
    assert "limit" not in failure(client.post("/retrieval", content=b"{"), 422, 422)
    assert client.post("/retrieval/other", json={}).json()["error_code"] == 2001
    assert client.get("/retrieval").json()["error_code"] == 405


def test_a_question_is_audited_and_counted_as_any_other(app, client):
    before = client_metrics(app)
    ok(client.post("/retrieval", json=asked(top_k=2)))
    event = json.loads((app.resources.state / "audit.jsonl").read_text().splitlines()[-1])
    assert (event["event"], event["namespace"], event["chunks"]) == ("knowledge.retrieve", "default", 2)
    assert "text" not in event or event["text"] is None
    assert client_metrics(app) == before + 2


def client_metrics(app):
    _, plain = app.resources.tokens.create("metrics", rights=["admin"])
    with app.client(plain) as admin:
        lines = admin.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("parquetry_knowledge_chunks_retrieved_total{")]
    return sum(float(line.split()[-1]) for line in found)


def test_the_operators_reranker_is_used_and_its_outage_is_told(tmp_path):
    workshop = Workshop(tmp_path)
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    with RerankServer("tei", []) as server:
        sections = {
            "corpus": {"root": str(workshop.root / "corpus")},
            "search": {"rerank": "service:m"},
            "rerank": {"base_url": server.base_url, "attempts": 1},
        }
        with running_app(parse_settings(sections, "test")) as app, app.client() as client:
            server.expect(lambda body: [0.9 if "draft" in text else 0.2 for text in body["texts"]])
            records = ok(client.post("/retrieval", json=asked(score_threshold=0.5)))["records"]
            assert [(each["metadata"]["filename"], each["score"]) for each in records] == [("draft.md", 0.9)]
            server.expect(error(500, "down"))
            assert "500" in failure(client.post("/retrieval", json=asked(query="days")), 503, 503)
