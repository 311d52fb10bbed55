"""Promises of the service as a whole: every worker, chats, answers in words, examples, documentation."""

import json
import re
import shlex

import httpx
import pytest

from tests.documentation import ROOT, blocks_of
from tests.servers import session_model
from tests.servers.chat_server import ChatServer, error, said
from tests.servers.knowledge_service import KnowledgeService
from tests.serving.http.checks import ok, problem
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-whole")]
HOST = "http://127.0.0.1:8000"
"""address of the service in the pages"""


@pytest.fixture
def folder(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.write("leave.md", "# Leave\n\nEverybody has thirty days of holiday.")
    workshop.refresh()
    (tmp_path / "parquetry.toml").write_text(
        '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"\n'
    )
    return tmp_path


def test_what_was_added_is_found_by_every_worker_at_once(folder):
    with KnowledgeService(folder, "--workers", "3") as service:
        service.wait_ready()
        for word in ("quokka", "numbat", "dugong", "wombat"):
            with service.client() as client:
                sent = {"content": f"The {word} sleeps.", "filename": f"{word}.md"}
                ok(client.post("/api/knowledge/documents", json=sent))
            for _ in range(12):
                # A connection each, which any worker may take.
                with service.client() as client:
                    found = ok(client.post("/api/v1/knowledge/default/retrieve", json={"query": word, "mode": "text"}))
                    assert [word in each["text"] for each in found["chunks"]] == [True], word


def test_metrics_are_those_of_all_workers(folder):
    with KnowledgeService(folder, "--workers", "3") as service:
        service.wait_ready()
        for _ in range(24):
            with service.client() as client:
                ok(client.get("/api/knowledge/stats"))
        counted = 'parquetry_http_requests_total{method="GET",route="/api/knowledge/stats",status="200"} 24.0'
        for _ in range(6):
            with service.client() as client:
                text = client.get("/metrics").text
            assert counted in text
            assert "parquetry_corpus_version 1.0" in text


def test_finished_chat_becomes_entries_and_the_same_again_is_one_session(folder):
    with ChatServer(session_model.answer) as model:
        with (folder / "parquetry.toml").open("a") as settings:
            settings.write(f'[llm]\nmodel = "m"\nbase_url = "{model.url}"\napi_key = "k"\n')
        with KnowledgeService(folder) as service, service.client() as client:
            service.wait_ready()
            chat = {
                "session_id": "chat-17",
                "user_id": "ada",
                "messages": [
                    {"role": "user", "content": "individual/preference: Tea: Ada drinks it green."},
                    {"role": "assistant", "content": "Noted."},
                ],
            }
            for expected in (1, 0):
                job = ok(client.post("/api/v1/sessions", json=chat), 201)
                assert job["state"] == "completed", job
                assert job["result"]["entries"]["new"] == expected, job["result"]
            entries = ok(client.get("/api/v1/entries"))["entries"]
            assert [each["text"] for each in entries] == ["Tea: Ada drinks it green."]
            asked = {"query": "green tea", "type": "both", "mode": "text"}
            (chunk,) = ok(client.post("/api/v1/knowledge/default/retrieve", json=asked))["chunks"]
            assert chunk["type"] == "entry"


def test_answer_in_words_rests_on_what_is_found_and_a_failing_model_is_an_error(folder):
    bodies = []

    def reply(body):
        bodies.append(body)
        return said("Thirty days [1].") if len(bodies) == 1 else error(503, "out of memory")

    with ChatServer(reply) as model:
        with (folder / "parquetry.toml").open("a") as settings:
            settings.write(f'[llm]\nmodel = "m"\nbase_url = "{model.url}"\napi_key = "sk-planted-key"\nattempts = 1\n')
        with KnowledgeService(folder) as service, service.client() as client:
            service.wait_ready()
            question = {"question": "How many days of holiday?"}
            told = ok(client.post("/api/v1/knowledge/default/query", json=question))
            assert told["answer"] == "Thirty days [1]."
            assert told["citations"][0]["source"] == "leave.md"
            shown = json.dumps(bodies[0])
            assert "thirty days of holiday" in shown
            assert "[Source: leave.md]" in shown
            counted = 'parquetry_knowledge_query_tokens_total{kind="input",provider="parquetry"} 120.0'
            assert counted in client.get("/metrics").text
            failed = client.post("/api/v1/knowledge/default/query", json=question)
            assert failed.status_code >= 500, failed.text
            assert "sk-planted-key" not in failed.text + service.output


def test_read_only_service_answers_and_changes_nothing(folder):
    with KnowledgeService(folder, "--read-only") as service, service.client() as client:
        service.wait_ready()
        ok(client.get("/api/knowledge/search", params={"q": "holiday"}))
        problem(client.post("/api/knowledge/documents", json={"content": "x", "filename": "x.md"}), 403, "read-only")
        problem(client.post("/api/v1/jobs", json={"kind": "refresh"}), 403, "read-only")


# --- the description and the page


def test_examples_of_the_description_are_answered(folder):
    with KnowledgeService(folder) as service, service.client() as client:
        service.wait_ready()
        (document,) = ok(client.get("/api/knowledge/documents"))["documents"]
        tried = 0
        for path, methods in client.get("/openapi.json").json()["paths"].items():
            for method, route in methods.items():
                for example in _examples(client, route):
                    filled = path.replace("{namespace}", "default")
                    text = json.dumps(example).replace("{document_id}", document["id"])
                    response = client.request(
                        method, filled, content=text, headers={"content-type": "application/json"}
                    )
                    assert response.is_success, (method, path, example, response.text)
                    tried += 1
        assert tried >= 6


def _examples(client, route):
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    if "$ref" in schema:
        schemas = client.get("/openapi.json").json()["components"]["schemas"]
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema.get("examples", [])


def test_every_call_of_the_page_is_answered(tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("examples", "README.md"):
        (folder / name).symlink_to(ROOT / name)
    config = folder / "parquetry.toml"
    settings = (ROOT / "examples" / "parquetry.toml").read_text()
    config.write_text(re.sub(r'root = "[^"]*"', 'root = "corpus"', settings).replace('"./', f'"{ROOT}/examples/'))
    calls = [
        line
        for block in blocks_of("docs/knowledge-api.md")
        if block.language == "sh"
        for line in block.code.splitlines()
        if line.startswith("curl ")
    ]
    assert len(calls) >= 15
    with KnowledgeService(folder, "--config", str(config)) as service, service.client() as client:
        asked = ok(client.post("/api/v1/jobs", json={"kind": "refresh"}, params={"wait": "false"}), 202)
        job = f"/api/v1/jobs/{asked['job_id']}"
        # On a busy machine it takes longer than the request waits.
        service.wait_for(lambda each: ok(each.get(job))["state"] not in ("queued", "running"))
        assert ok(client.get(job))["state"] == "completed"
        service.wait_ready()
        document = ok(client.get("/api/knowledge/documents"))["documents"][0]["id"]
        for call in calls:
            response = _curl(client, service.url, call.replace("{document_id}", document), folder)
            if "/query" in call:
                assert response.status_code == 501, (call, response.text)
            else:
                assert response.is_success, (call, response.text)
                assert response.content


def _curl(client, url, line, folder):
    """Do what a line with curl does."""
    words = shlex.split(line)[1:]
    headers, body, files, place = {}, None, None, None
    while words:
        word = words.pop(0)
        if word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = words.pop(0)
        elif word == "-F":
            path, _, media_type = words.pop(0).removeprefix("file=@").partition(";type=")
            files = {"file": (path, (folder / path).read_bytes(), media_type)}
        else:
            assert word.startswith(HOST), word
            place = word.replace(HOST, url)
    method = "GET" if body is None and files is None else "POST"
    return client.request(method, httpx.URL(place), headers=headers, content=body, files=files)
