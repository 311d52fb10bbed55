"""Traces and metrics as they arrive at a collector: of runs, of the service with two processes, and of commands."""

import json
import os
import subprocess
import sys
import threading

import pytest

from tests.servers.knowledge_service import KnowledgeService
from tests.servers.otlp_receiver import OtlpReceiver
from tests.serving.program import command

pytestmark = pytest.mark.slow
SECRET = "correct-horse-battery"
QUESTION = "hardness of ash wood"
SETTINGS = f"""
[corpus]
root = "corpus"
[extraction]
workers = 1
ocr = false
[refresh]
attempts = 1
batch_documents = 1
[observability]
otel = true
[[source]]
name = "docs"
uri = "docs"
[[source]]
name = "store"
uri = "http://127.0.0.1:9/pages?token={SECRET}"
options = {{ allow = ["127.0.0.1:9"] }}
"""
BATCH = ("parquetry.batch", [(f"parquetry.batch.{stage}", []) for stage in ("embed", "extract", "fetch", "store")])
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Ash\n\nAsh is hard.")
    (tmp_path / "docs" / "b.md").write_text("# Beech\n\nBeech is red.")
    (tmp_path / "parquetry.toml").write_text(SETTINGS)
    return tmp_path


def environment(url):
    headers = "x-key=of-the-collector"
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SERVICE_NAME": "kb", "OTEL_EXPORTER_OTLP_HEADERS": headers}


def run(folder, url, *arguments):
    told = {**os.environ, **environment(url)}
    return subprocess.run(command(*arguments), cwd=folder, env=told, capture_output=True, text=True, check=False)


def test_run_is_a_tree_of_its_steps_and_batches(folder):
    with OtlpReceiver() as receiver:
        done = run(folder, receiver.url, "refresh", "--direct", "--json", "docs")
        assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert (done.stderr, report["warnings"]) == ("", [])
    (root,) = receiver.roots
    steps = [(f"parquetry.{step}", []) for step in ("index", "plan", "publish", "record")]
    process = ("parquetry.process", [BATCH, BATCH])
    assert root.tree == ("parquetry.refresh", sorted([*steps, process], key=str))
    assert root.resource["service.name"] == "kb"
    assert root.attributes["parquetry.run.id"] == report["run_id"]
    assert root.attributes["parquetry.sources"] == ["docs"]
    assert root.attributes["parquetry.documents.added"] == 2
    assert (root.attributes["parquetry.run.status"], root.error) == ("completed", None)
    batches = [span for span in receiver.spans if span.name == "parquetry.batch"]
    assert sorted(span.attributes["parquetry.batch.number"] for span in batches) == [0, 1]
    assert receiver.metrics["parquetry.run.duration"] == [
        {"parquetry.run.kind": "refresh", "parquetry.run.status": "completed"}
    ]
    assert {"parquetry.outcome": "added"} in receiver.metrics["parquetry.run.documents"]
    assert {headers["x-key"] for headers in receiver.headers} == {"of-the-collector"}


def test_run_that_fails_has_the_status_of_an_error_and_no_secret_anywhere(folder):
    with OtlpReceiver() as receiver:
        done = run(folder, receiver.url, "refresh", "--direct")
    assert done.returncode == 4, done
    (root,) = receiver.roots
    assert (root.error, root.attributes["error.type"]) == ("OutageError", "OutageError")
    assert root.attributes["parquetry.run.status"] == "failed"
    assert root.attributes["parquetry.sources"] == ["docs", "store"]
    sent = b"".join(receiver.bodies)
    assert b"docs" in sent
    for word in (SECRET, "127.0.0.1:9", "Beech", str(folder)):
        assert word.encode() not in sent, word


def test_collector_that_is_away_fails_nothing_and_is_told(folder):
    done = run(folder, "http://127.0.0.1:9", "refresh", "--direct", "--json", "docs")
    assert done.returncode == 0, done
    (warning,) = json.loads(done.stdout)["warnings"]
    assert "did not arrive at the OpenTelemetry collector" in warning
    assert json.loads(done.stdout)["version"] == 1


def test_collector_that_does_not_answer_is_not_waited_for_without_end(folder):
    """The answer is held back until the run has ended."""
    held = threading.Event()
    with OtlpReceiver(held) as receiver:
        done = run(folder, receiver.url, "refresh", "--direct", "--json", "docs")
        held.set()
    assert done.returncode == 0, done
    (warning,) = json.loads(done.stdout)["warnings"]
    assert "did not arrive at the OpenTelemetry collector" in warning


def test_service_and_search_command_send_their_searches(folder):
    with OtlpReceiver() as receiver:
        assert run(folder, receiver.url, "refresh", "--direct", "docs").returncode == 0
        runs = len(receiver.roots)
        assert run(folder, receiver.url, "search", QUESTION, "-k", "1", "--mode", "text").returncode == 0
        with KnowledgeService(folder, "--workers", "2", "--read-only", **environment(receiver.url)) as service:
            service.wait_ready()
            with service.client() as client:
                sent = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
                for _ in range(3):
                    found = client.get("/api/knowledge/search", params={"q": QUESTION, "k": 1}, headers=sent)
                    assert found.status_code == 200
                unknown = client.get(f"/api/knowledge/search/{SECRET}", headers={"traceparent": "00-none"})
                assert unknown.status_code == 404
    searched, *requests = receiver.roots[runs:]
    assert searched.tree == ("parquetry.search", [])
    assert searched.attributes["parquetry.search.mode"] == "text"
    assert (searched.attributes["parquetry.search.k"], searched.attributes["parquetry.search.hits"]) == (1, 1)
    assert any(name.startswith("parquetry.search.ms.") for name in searched.attributes)
    called = [span for span in requests if span.trace_id == TRACE]
    assert [span.parent_id for span in called] == [CALLER] * 3
    for span in called:
        assert span.tree == ("GET /api/knowledge/search", [("parquetry.search", [])])
        assert span.kind == 2
        assert span.attributes["http.response.status_code"] == 200
        assert span.attributes["http.route"] == "/api/knowledge/search"
    (unknown,) = [span for span in requests if span.trace_id != TRACE]
    assert (unknown.parent_id, unknown.attributes["http.response.status_code"], unknown.error) == ("", 404, None)
    assert {"http.server.request.duration", "parquetry.search.duration"} <= set(receiver.metrics)
    assert not any(word.encode() in body for body in receiver.bodies for word in (QUESTION, SECRET))


def test_nothing_is_imported_unless_the_settings_say_so(folder):
    (folder / "parquetry.toml").write_text(SETTINGS.replace("otel = true", ""))
    probe = """
import sys
from parquetry.serving.cli.main import run
code = run(["refresh", "--direct", "docs"]) or run(["search", "ash"])
sys.exit(code or ", ".join(name for name in sys.modules if name.startswith("opentelemetry")) or 0)
"""
    done = subprocess.run([sys.executable, "-c", probe], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_missing_extra_names_the_line_to_install_it(folder):
    probe = """
import sys
sys.modules["opentelemetry.sdk"] = None
from parquetry.serving.cli.main import run
sys.exit(run(["refresh", "--direct", "docs"]))
"""
    done = subprocess.run([sys.executable, "-c", probe], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "otel" in done.stderr
    assert done.stderr.startswith("parquetry: ")
