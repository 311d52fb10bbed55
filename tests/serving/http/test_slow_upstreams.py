"""A wait for another service, or for the first version, holds up no other request."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.chat_server import ChatServer, said
from tests.servers.http_app import running_app
from tests.serving.http.checks import ok
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

THREADS = 60
"""more requests at a time than the web framework has threads"""


def settings_of(workshop, **sections):
    return parse_settings({"corpus": {"root": str(workshop.root / "corpus")}, **sections}, "test")


@pytest.fixture
def workshop(tmp_path):
    made = Workshop(tmp_path)
    made.write("oak.md", "An oak table has four legs.")
    return made


def test_slow_language_model_holds_up_no_search(workshop, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    workshop.refresh()
    released = threading.Event()

    def rule(body):
        released.wait(60)
        return said("Four [1].")

    with ChatServer(rule) as model, ThreadPoolExecutor(THREADS) as pool:
        llm = {"model": "m", "base_url": model.url}
        with running_app(settings_of(workshop, llm=llm)) as app, app.client() as client:
            with app.resources.follower.reader(wait=60):
                pass
            path, asked = "/api/v1/knowledge/default/query", {"question": "How many legs has an oak table?"}
            answers = [pool.submit(client.post, path, json=asked) for _ in range(THREADS)]
            while len(model.bodies) < 10:
                time.sleep(0.01)
            found = ok(client.get("/api/knowledge/search", params={"q": "oak table"}))
            assert found["count"] == 1
            assert not any(answer.done() for answer in answers)
            released.set()
            assert {ok(answer.result())["answer"] for answer in answers} == {"Four [1]."}


def test_slow_site_holds_up_no_write(workshop, monkeypatch):
    workshop.refresh()
    released, begun = threading.Event(), []

    def fetch(url, settings):
        begun.append(url)
        released.wait(60)
        raise TimeoutError("never there")

    monkeypatch.setattr("parquetry.serving.http.uploading.fetch_url", fetch)
    with ThreadPoolExecutor(THREADS) as pool, running_app(settings_of(workshop)) as app, app.client() as client:
        sent = {"url": "https://example.com/slow"}
        answers = [pool.submit(client.post, "/api/knowledge/documents/url", json=sent) for _ in range(THREADS)]
        while len(begun) < 4:
            time.sleep(0.01)
        later = {"content": "An ash bench.", "filename": "ash.md"}
        job = ok(client.post("/api/knowledge/documents", json=later, params={"wait": "false"}), 202)["job_id"]
        assert ok(client.get(f"/api/v1/jobs/{job}"))["state"] == "queued"
        assert not any(answer.done() for answer in answers)
        released.set()
        for answer in answers:
            answer.result()


def test_requests_that_wait_for_the_first_version_hold_up_no_other(workshop, monkeypatch):
    monkeypatch.setattr("parquetry.serving.service.awaiting.START_SECONDS", 60.0)
    with ThreadPoolExecutor(THREADS) as pool, running_app(settings_of(workshop)) as app, app.client() as client:
        answers = [pool.submit(client.get, "/api/knowledge/stats") for _ in range(THREADS)]
        assert ok(client.get("/api/v1/jobs"))["jobs"] == []
        assert not any(answer.done() for answer in answers)
        workshop.refresh()
        assert {ok(answer.result())["documentCount"] for answer in answers} == {1}
