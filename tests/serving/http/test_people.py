"""Two people, two organizations and two namespaces: nothing of one in any answer of the other, whatever they guess."""

import pytest

from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import load_settings
from tests.servers.knowledge_service import KnowledgeService
from tests.serving.http.checks import ok, problem

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-people")]
RIGHTS = ["search", "read", "write"]
BEARERS = {
    "ada": {"user_id": "ada", "org_id": "acme", "rights": RIGHTS},
    "bob": {"user_id": "bob", "org_id": "acme", "rights": RIGHTS},
    "eve": {"user_id": "eve", "org_id": "other", "rights": RIGHTS},
    "hr": {"user_id": "hal", "org_id": "acme", "rights": RIGHTS, "namespaces": ["hr"]},
    "root": {"rights": ["admin"]},
}
SECRETS = {
    "ada": ("ada", {"visibility": "individual"}),
    "acme": ("ada", {"visibility": "organization"}),
    "eve": ("eve", {"visibility": "individual"}),
    "everyone": ("root", {"visibility": "public"}),
}
"""word of a document -> who uploads it, and how"""
SEES = {
    "ada": {"ada", "acme", "everyone"},
    "bob": {"acme", "everyone"},
    "eve": {"eve", "everyone"},
    "hr": set(),
    "root": set(SECRETS),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Run a service that requires tokens; return clients by bearer, and the ids of what they uploaded."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "parquetry.toml").write_text('[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n')
    with TokenStore(state_folder(load_settings(folder / "parquetry.toml"))) as tokens:
        plain = {name: tokens.create(name, **options)[1] for name, options in BEARERS.items()}
    with KnowledgeService(folder, "--token-required") as service:
        clients = {name: service.client(token) for name, token in plain.items()}
        ids = {}
        for word, (owner, access) in SECRETS.items():
            sent = {"content": f"The {word}word opens the vault of {word}.", "filename": f"{word}.md", **access}
            ids[word] = ok(clients[owner].post("/api/knowledge/documents", json=sent))["documentId"]
        yield clients, ids, service
        for each in clients.values():
            each.close()
        for token in plain.values():
            assert token not in service.output


@pytest.mark.parametrize("name", BEARERS)
def test_only_what_a_bearer_sees_is_listed_found_and_counted(house, name):
    clients, ids, _ = house
    client, seen = clients[name], {ids[word] for word in SEES[name]}
    listed = ok(client.get("/api/knowledge/documents"))
    assert {each["id"] for each in listed["documents"]} == seen
    assert listed["total"] == ok(client.get("/api/knowledge/stats"))["documentCount"] == len(seen)
    found = ok(client.get("/api/knowledge/search", params={"q": "Which word opens the vault?", "threshold": 0}))
    assert {each["documentId"] for each in found["results"]} == seen


@pytest.mark.parametrize("name", BEARERS)
@pytest.mark.parametrize("word", SECRETS)
def test_id_of_another_does_not_help(house, name, word):
    clients, ids, _ = house
    client, document = clients[name], ids[word]
    if word in SEES[name]:
        assert f"{word}word" in ok(client.get(f"/api/knowledge/documents/{document}"))["content"]
        return
    unknown = client.get("/api/knowledge/documents/00000000-0000-5000-8000-000000000000")
    answers = [
        client.get(f"/api/knowledge/documents/{document}"),
        client.get(f"/api/knowledge/fragments/{document}"),
        client.delete(f"/api/knowledge/documents/{document}"),
        client.post("/api/v1/feedback", json={"query": "x", "document_id": document, "relevant": True}),
    ]
    for answer in answers:
        told = problem(answer, 404, "no-such-document")
        assert told == {**problem(unknown, 404, "no-such-document"), "detail": told["detail"]}
        assert word not in told["detail"]


def test_one_may_not_upload_for_others_or_wider_than_allowed(house):
    clients, _, _ = house
    for access in ({"user_id": "bob"}, {"org_id": "other"}, {"visibility": "public"}):
        response = clients["ada"].post("/api/knowledge/documents", json={"content": "x", "filename": "x.md", **access})
        assert response.status_code == 403, response.text


def test_same_name_of_two_people_is_two_documents(house):
    clients, _, _ = house
    sent = {"filename": "notes.md", "visibility": "individual"}
    one = ok(clients["ada"].post("/api/knowledge/documents", json={**sent, "content": "Notes of the first."}))
    two = ok(clients["bob"].post("/api/knowledge/documents", json={**sent, "content": "Notes of the second."}))
    assert one["documentId"] != two["documentId"]
    told = ok(clients["ada"].get(f"/api/knowledge/documents/{one['documentId']}"))
    assert told["content"].strip() == "Notes of the first."
    for name, document in (("ada", one), ("bob", two)):
        ok(clients[name].delete(f"/api/knowledge/documents/{document['documentId']}"))


def test_job_of_another_does_not_exist(house):
    clients, _, _ = house
    sent = {"content": "A job.", "filename": "job.md"}
    job = ok(clients["ada"].post("/api/knowledge/documents", json=sent, params={"wait": "false"}), 202)["job_id"]
    problem(clients["eve"].get(f"/api/v1/jobs/{job}"), 404, "no-such-job")
    problem(clients["eve"].delete(f"/api/v1/jobs/{job}"), 404, "no-such-job")
    assert all(each["id"] != job for each in ok(clients["eve"].get("/api/v1/jobs"))["jobs"])
    assert any(each["id"] == job for each in ok(clients["ada"].get("/api/v1/jobs"))["jobs"])


def test_namespace_of_a_token_is_its_whole_world(house):
    clients, _, _ = house
    assert ok(clients["hr"].get("/api/v1/knowledge/namespaces"))["namespaces"] in ([], ["hr"])
    for path in ("/api/v1/knowledge/default/documents", "/api/v1/knowledge/default/documents/x"):
        problem(clients["hr"].get(path), 404, "no-such-namespace")
    problem(
        clients["hr"].post(
            "/api/knowledge/documents", json={"content": "x", "filename": "x.md"}, params={"namespace": "default"}
        ),
        404,
        "no-such-namespace",
    )
    problem(
        clients["hr"].get("/api/knowledge/stats", headers={"X-Parquetry-Namespace": "default"}),
        404,
        "no-such-namespace",
    )
