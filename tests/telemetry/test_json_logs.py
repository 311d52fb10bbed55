"""Logs as JSON: one object a line, with the run and without secrets; what commands print stays."""

import json
import subprocess

import pytest

from tests.servers.knowledge_service import KnowledgeService
from tests.serving.program import command

pytestmark = pytest.mark.slow
SECRET = "correct-horse-battery"
SETTINGS = f"""
[corpus]
root = "corpus"
[extraction]
workers = 1
ocr = false
[observability]
log_format = "json"
[[source]]
name = "docs"
uri = "docs"
[[source]]
name = "store"
uri = "http://reader:{SECRET}@127.0.0.1:9/pages"
"""
KEYS = ["time", "level", "logger", "message", "run_id", "source"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Ash\n\nAsh is hard.")
    (tmp_path / "docs" / "b.docx").write_text("no document")
    (tmp_path / "parquetry.toml").write_text(SETTINGS)
    return tmp_path


def lines_of(text):
    found = [json.loads(line) for line in text.splitlines()]
    assert all(list(line)[: len(KEYS)] == KEYS for line in found), found
    return found


def refreshed(folder, *arguments):
    return subprocess.run(
        command("refresh", "--direct", *arguments), cwd=folder, capture_output=True, text=True, check=False
    )


def test_run_writes_its_progress_and_failures_with_its_id(folder):
    done = refreshed(folder, "docs", "--json")
    assert done.returncode == 0
    run_id = json.loads(done.stdout)["run_id"]
    lines = lines_of(done.stderr)
    assert {line["run_id"] for line in lines} == {run_id}
    assert {line["source"] for line in lines} == {"docs"}
    messages = [line["message"] for line in lines]
    assert messages[0] == "docs: 2 documents, 2 to do"
    assert "published version 1: 2 scanned, 1 added, 1 failed" in messages
    (failed,) = [line for line in lines if line["level"] == "warning"]
    assert failed["message"].startswith(f"failed {(folder / 'docs' / 'b.docx').as_uri()}: extract/damaged")


def test_run_that_fails_says_so_without_the_secret(folder):
    (folder / "corpus").write_text("no folder")
    done = refreshed(folder)
    assert done.returncode == 2, done
    *lines, told = done.stderr.splitlines()
    assert told.startswith("parquetry: ")
    (line,) = lines_of("\n".join(lines))
    assert line["level"] == "error"
    assert line["message"].startswith("refresh failed, nothing was published: SettingsError: ")
    assert SECRET not in done.stderr + done.stdout


def test_run_that_is_interrupted_after_its_publish_says_so(folder):
    interrupting = """import parquetry.flows.pipelines.pipeline as pipeline
def interrupt(*_): raise KeyboardInterrupt
pipeline.refresh_index = interrupt
main()"""
    program = [part.replace("; main()", f"\n{interrupting}") for part in command("refresh", "--direct", "docs")]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done
    *lines, told = done.stderr.splitlines()
    assert told == "parquetry: interrupted; version 1 was published"
    (line,) = [line for line in lines_of("\n".join(lines)) if line["level"] == "error"]
    assert line["message"].startswith("refresh failed, after its publish: KeyboardInterrupt")


def test_output_of_commands_is_as_with_text(folder):
    as_json = refreshed(folder, "docs")
    text = SETTINGS.replace('"json"', '"text"').replace('"corpus"', '"other"')
    (folder / "parquetry.toml").write_text(text)
    as_text = refreshed(folder, "docs")
    assert as_text.stderr == ""
    assert [line.split(" in ")[0] for line in as_json.stdout.replace("corpus", "other").splitlines()] == [
        line.split(" in ")[0] for line in as_text.stdout.splitlines()
    ]


def test_service_and_its_jobs_write_objects_only(folder):
    """Its banner on stdout apart: lines of the jobs' process, of runs, and of what goes wrong."""
    with KnowledgeService(folder, "docs") as service:
        service.wait_for(lambda _: "published version 1" in service.output)
        service.wait_ready()
    plain = [line for line in service.lines if not line.startswith(("Serving ", "Stopped."))]
    lines = lines_of("".join(plain))
    assert {"parquetry_runs", "parquetry_service"} <= {line["logger"] for line in lines}
    (published,) = [line for line in lines if line["message"].startswith("published version 1")]
    assert published["run_id"]
    assert published["source"] == "docs"
    assert SECRET not in service.output
