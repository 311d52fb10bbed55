"""Requests with limited rights: what they see, where they write, and what happens while their body arrives."""

import json
import socket
import threading

import pytest

from parquetry.serving.access.audit import audit_events
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import working_app
from tests.serving.http.checks import ok, problem
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("owners")]
ALL = ["search", "read", "write", "admin"]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """Run an application that requires tokens and carries out its jobs."""
    workshop = Workshop(tmp_path_factory.mktemp("owners"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    sections = {
        "corpus": {"root": workshop.settings.corpus.root},
        "serve": {"token_required": True},
        "extraction": {"workers": 1},
    }
    with working_app(parse_settings(sections, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


@pytest.fixture
def client_of(app):
    """Return a function that makes a token and a client with it."""
    clients = []

    def make(name, **options):
        _, token = app.resources.tokens.create(name, **{"rights": ALL, **options})
        clients.append(app.client(token))
        return clients[-1]

    yield make
    for each in clients:
        each.close()


def uploaded(client, name, **options):
    return ok(client.post("/api/knowledge/documents", json={"content": "An ash bench.", "filename": name}, **options))


def namespaces(client):
    return ok(client.get("/api/v1/knowledge/namespaces"))["namespaces"]


def multipart():
    kind, body = form_of("file")
    return "/api/knowledge/documents", kind, body


def form_of(field, more=b""):
    head = f'--edge\r\nContent-Disposition: form-data; name="{field}"; filename="late.md"\r\n\r\n'.encode()
    return "multipart/form-data; boundary=edge", more + head + b"Handed in too late." + b"\r\n--edge--\r\n"


def openai_file():
    purpose = b'--edge\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
    return "/v1/files", *form_of("file", purpose)


def validated_json():
    documents = [{"text": "Handed in too late.", "source": "late.md"}]
    return "/api/v1/knowledge/default/documents", "application/json", json.dumps({"documents": documents}).encode()


def in_json():
    return (
        "/api/knowledge/documents",
        "application/json",
        json.dumps({"content": "Handed in too late.", "filename": "late.md"}).encode(),
    )


@pytest.mark.parametrize(
    ("form", "before"),
    [
        (validated_json, "admit"),
        # These read the body after the last check of a request without one.
        (multipart, "check_again"),
        (in_json, "check_again"),
        (openai_file, "check_again"),
    ],
)
def test_token_revoked_while_the_body_arrives_writes_nothing(app, client_of, form, before, monkeypatch):
    checked, check = threading.Event(), getattr(app.resources.gate, before)

    def watched(*given, **options):
        found = check(*given, **options)
        checked.set()
        return found

    monkeypatch.setattr(app.resources.gate, before, watched)
    made, token = app.resources.tokens.create("late", rights=["write"])
    path, kind, body = form()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    port = int(app.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode() + body[:20])
        assert checked.wait(60)
        app.resources.tokens.revoke(made.id)
        connection.sendall(body[20:])
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 401 "), answer
    assert b"was revoked" in answer
    reader = client_of("reader")
    listed = ok(reader.get("/api/knowledge/documents"))["documents"] + ok(reader.get("/v1/files"))["data"]
    assert all(each["filename"] != "late.md" for each in listed)


@pytest.mark.parametrize(
    "limits", [{"user_id": "ada"}, {"org_id": "acme"}, {"namespaces": ["default"]}], ids=["user", "org", "namespaces"]
)
def test_admin_with_limits_sees_no_runs_and_no_row_counts(client_of, limits):
    limited, full = client_of("limited", **limits), client_of("full")
    (run, *_) = ok(full.get("/api/v1/runs"))["runs"]
    problem(limited.get("/api/v1/runs"), 403, "right-missing")
    problem(limited.get(f"/api/v1/runs/{run['run_id']}"), 403, "right-missing")
    assert ok(full.get("/api/v1/versions"))["versions"][-1]["rows"] == 1
    assert {each["rows"] for each in ok(limited.get("/api/v1/versions"))["versions"]} == {None}


def test_admin_with_limits_sees_own_judgements_only(client_of):
    ada, bob, full = client_of("ada", user_id="ada"), client_of("bob", user_id="bob"), client_of("full")
    document = uploaded(full, "judged.md", params={"namespace": "default"})["documentId"]
    for client, query in ((ada, "from ada"), (bob, "from bob")):
        sent = {"query": query, "document_id": document, "relevant": True}
        assert client.post("/api/v1/feedback", json=sent).status_code == 201
    seen = [{each["query"] for each in ok(client.get("/api/v1/feedback"))["feedback"]} for client in (ada, bob, full)]
    assert seen == [{"from ada"}, {"from bob"}, {"from ada", "from bob"}]


@pytest.mark.parametrize("where", ["query", "header", "body"])
def test_namespace_is_named_in_query_header_or_body(client_of, where):
    client, name = client_of("writer"), f"by-{where}-ü"
    sent = {"content": "An elm chair.", "filename": "elm.md"}
    options = {
        "query": {"params": {"namespace": name}},
        "header": {"headers": {"X-Parquetry-Namespace": name.encode()}},
        "body": {},
    }[where]
    ok(client.post("/api/knowledge/documents", json=sent | ({"namespace": name} if where == "body" else {}), **options))
    assert name in namespaces(client)


def test_namespace_in_the_body_must_be_one_of_the_token(client_of):
    client, sent = client_of("narrow", namespaces=["hr"]), {"content": "x", "filename": "x.md", "namespace": "default"}
    problem(client.post("/api/knowledge/documents", json=sent), 404, "no-such-namespace")


@pytest.mark.parametrize("name", ["..", ".", "../../up", "/tmp", "a/../../b", "nul\0"])
def test_namespace_that_looks_like_a_path_stays_below_the_state_folder(app, client_of, name):
    client = client_of("writer")
    before = {each.name for each in app.resources.state.iterdir()}
    chat = {"session_id": "s", "messages": [{"role": "user", "content": "I live in Bern."}], "namespace": name}
    for path, sent in (
        ("/api/v1/sessions", chat),
        ("/api/knowledge/documents", {"content": "x", "filename": "x.md", "namespace": name}),
    ):
        response = client.post(path, json=sent, params={"wait": "false"})
        assert response.status_code in (202, 404, 422), response.text
    # The first request of a service also begins its audit log.
    assert {each.name for each in app.resources.state.iterdir()} - before <= {"sessions", "audit.jsonl"}
    inside = [each for each in app.resources.state.rglob("*.json") if each.is_file()]
    assert all(app.resources.state.resolve() in each.resolve().parents for each in inside)
    # Each chat lies as deep as any other: namespace, user, organization.
    chats = list((app.resources.state / "sessions").rglob("*.json"))
    assert {len(each.relative_to(app.resources.state).parts) for each in chats} <= {5}


def test_documents_of_one_name_in_one_request_are_refused(client_of):
    client = client_of("writer")
    twice = [{"text": text, "source": "same.md"} for text in ("one", "two")]
    told = problem(
        client.post("/api/v1/knowledge/default/documents", json={"documents": twice}), 422, "invalid-request"
    )
    assert "body.documents.1.source" in told["detail"]
    once = [{"text": text, "source": f"{text}.md"} for text in ("one", "two")]
    assert client.post("/api/v1/knowledge/default/documents", json={"documents": once}).status_code == 201


def test_write_that_is_answered_before_its_end_is_recorded(app, client_of):
    client, known = client_of("writer", user_id="recorder"), {"wait": "false"}
    sent = {"content": "A beech stool.", "filename": "beech.md"}
    job = ok(client.post("/api/knowledge/documents", json=sent, params=known), 202)["job_id"]
    app.resources.jobs.wait(job, 60)
    (document,) = [
        each for each in ok(client.get("/api/knowledge/documents"))["documents"] if each["filename"] == "beech.md"
    ]
    ok(client.delete(f"/api/knowledge/documents/{document['id']}", params=known), 202)
    events = [each for each in audit_events(app.resources.state) if each.get("user_id") == "recorder"]
    told = [(each["event"], each["documents"], each["status"]) for each in events]
    assert told == [("knowledge.ingest", 1, 202), ("knowledge.delete", 1, 202)]
