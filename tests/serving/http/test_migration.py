"""A service goes on answering while its corpus is migrated: no search fails, and workers follow without a restart."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tests.servers.embedding_server import EmbeddingServer
from tests.servers.knowledge_service import KnowledgeService
from tests.serving.http.checks import ok
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-migration")]
DOCUMENTS = 12


def command(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "parquetry.serving.cli.main", *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Askers:
    """Clients that search again and again, a connection for each search."""

    def __init__(self, service):
        self._service, self._over = service, threading.Event()
        self.answers: list[int] = []
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(mode,)) for mode in ("vector", "hybrid", "text")]

    def _ask(self, mode):
        # A pause leaves the processor to the migration, which takes many times as long otherwise.
        while not self._over.wait(0.05):
            with self._service.client() as client:
                answer = client.post(
                    "/api/v1/knowledge/default/retrieve", json={"query": "count the boards of oak", "mode": mode}
                )
            if answer.status_code != 200 or not answer.json()["chunks"]:
                self.failures.append(f"{mode}: {answer.status_code} {answer.text}")
            self.answers.append(answer.status_code)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with EmbeddingServer() as server:
        workshop = Workshop(tmp_path)
        for number in range(DOCUMENTS):
            rules = (f"Rule {number}.{rule}: count the boards of oak." for rule in range(30))
            workshop.write(f"{number}.md", "\n\n".join(rules))
        workshop.refresh()
        (tmp_path / "parquetry.toml").write_text(
            f'[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[embedding]\nbase_url = "{server.url}"\n'
            '[[source]]\nname = "docs"\nuri = "docs"\n'
        )
        yield tmp_path, server


def test_no_search_fails_while_a_corpus_is_migrated_and_switched(folder):
    place, server = folder
    with KnowledgeService(place, "--workers", "2") as service:
        service.wait_ready()
        with Askers(service) as askers:
            command(place, "reindex", "--direct", "--embeddings-only", "--embedder", "openai:tiny")
            before = len(askers.answers)
            command(place, "reindex", "--direct", "--switch")
            server.requests.clear()
            service.wait_for(lambda _: any("count the boards of oak" in each.inputs for each in server.requests))
            service.wait_for(lambda _: len(askers.answers) > before + 60)
        assert askers.failures == []
        with service.client() as client:
            # What is handed in is embedded by the new model, although the service's settings name the one before.
            sent = {"content": "The quokka sleeps.", "filename": "quokka.md"}
            ok(client.post("/api/knowledge/documents", json=sent))
            found = ok(client.post("/api/v1/knowledge/default/retrieve", json={"query": "quokka", "mode": "vector"}))
            assert any("quokka" in each["text"] for each in found["chunks"])
    embedders = command(place, "sql", "SELECT DISTINCT embedder FROM documents", "--json")
    assert "openai:tiny/1@8" in embedders
    assert "wordllama" not in embedders
