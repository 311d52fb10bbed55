"""A build that is killed goes on where it was: nothing is embedded twice, and nothing is stored twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from parquetry.errors import RefusedError
from parquetry.flows.pipelines.migration import run_migration
from parquetry.flows.pipelines.migration_plan import MigrationRequest
from parquetry.flows.pipelines.observer import Observer
from parquetry.storage.database import open_duckdb, sql_list
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.embedding_server import EmbeddingServer, embeddings
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

DOCUMENTS = 8
VALUES = (("corpus.embedder", "openai:tiny"),)


class Stopped(BaseException):
    """The process ends here."""


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    workshop = Workshop(tmp_path)
    workshop.sections |= {"refresh": {"batch_documents": 2, "workers": 1}, "chunking": {"size": 120, "overlap": 0}}
    for number in range(DOCUMENTS):
        workshop.write(f"{number}.md", "\n\n".join(f"Rule {number}.{rule}: count the boards." for rule in range(9)))
    workshop.refresh()
    return workshop


def migrate(workshop, *values, action="build"):
    return run_migration(MigrationRequest(workshop.settings, values, action), DirectEngine(), Observer())


def stored(workshop, table):
    """Return the numbers of the rows of a table that were stored for the new model."""
    files = workshop.lake.snapshot().files[table]
    key = "revision" if table == "texts" else "(revision, chunk_index)"
    with open_duckdb() as connection:
        found = connection.execute(
            f"SELECT count(*), count(DISTINCT {key}) FROM read_parquet({sql_list(files)}) WHERE embedder LIKE 'openai%'"
        )
        return found.fetchone()


@pytest.mark.parametrize("table", ["texts", "chunks"])
def test_build_that_ends_before_a_table_is_registered_stores_no_row_twice(workshop, monkeypatch, table):
    """Texts are registered before chunks; the build that goes on registers what is missing of both."""
    from parquetry.tasks.documents import migration_run

    with EmbeddingServer() as server:
        workshop.sections["embedding"] = {"base_url": server.url}
        target, name = (migration_run, "register_candidates") if table == "texts" else (Lake, "register")

        def stop(*_, **__):
            raise Stopped

        with monkeypatch.context() as patched:
            patched.setattr(target, name, stop)
            with pytest.raises(Stopped):
                migrate(workshop, *VALUES)
        migrate(workshop, *VALUES)
        migrate(workshop, action="switch")
        sent = [text for request in server.requests for text in request.inputs if "Rule" in text]
        assert len(sent) == len(set(sent))
    texts, chunks = stored(workshop, "texts"), stored(workshop, "chunks")
    assert texts == (DOCUMENTS, DOCUMENTS)
    assert chunks[0] == chunks[1] == sum(row.chunks for row in workshop.rows().values())


def test_second_builder_at_the_same_time_is_refused(workshop):
    arrived, go_on = threading.Event(), threading.Event()

    def answer(request):
        if any("Rule" in text for text in request.inputs) and not arrived.is_set():
            arrived.set()
            assert go_on.wait(60)
        return embeddings(request)

    with EmbeddingServer(answer) as server:
        workshop.sections["embedding"] = {"base_url": server.url}
        outcome = []

        def first():
            try:
                migrate(workshop, *VALUES)
            except RefusedError as error:
                outcome.append(error)

        thread = threading.Thread(target=first)
        thread.start()
        assert arrived.wait(60)
        assert migrate(workshop, *VALUES).documents.changed == DOCUMENTS
        go_on.set()
        thread.join()
        assert [str(error) for error in outcome] == [
            "another process is building this migration; let it end, or stop it"
        ]
        migrate(workshop, action="switch")
    assert stored(workshop, "texts") == (DOCUMENTS, DOCUMENTS)


@pytest.mark.slow
def test_killed_command_goes_on_and_every_text_is_embedded_once(workshop, tmp_path):
    """The third request is never answered: its texts are not paid for, and everything before is stored."""
    arrived, release = threading.Event(), threading.Event()
    answered: list[str] = []

    def answer(request):
        texts = [text for text in request.inputs if "Rule" in text]
        if texts and len(answered) >= 2 * len(texts) and not release.is_set():
            arrived.set()
            release.wait(120)
            return embeddings(request)
        answered.extend(texts)
        return embeddings(request)

    with EmbeddingServer(answer) as server:
        (tmp_path / "parquetry.toml").write_text(
            '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[chunking]\nsize = 120\noverlap = 0\n'
            f'[refresh]\nbatch_documents = 2\nworkers = 1\n[embedding]\nbase_url = "{server.url}"\n'
            '[[source]]\nname = "docs"\nuri = "docs"\n'
        )
        command = [sys.executable, "-m", "parquetry.serving.cli.main", "reindex", "--direct"]
        build = [*command, "--embeddings-only", "--embedder", "openai:tiny"]
        process = subprocess.Popen(build, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert arrived.wait(120)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        release.set()
        before = len(answered)
        assert before > 0
        status = [sys.executable, "-m", "parquetry.serving.cli.main", "status"]
        told = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert "4 of 8 documents built" in " ".join(told.split())
        subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
        subprocess.run([*command, "--switch"], cwd=tmp_path, check=True, capture_output=True)
    assert len(answered) > before
    assert len(answered) == len(set(answered))
    workshop.sections["embedding"] = {"base_url": server.url}
    assert {row.embedder for row in workshop.rows().values()} == {"openai:tiny/1@8"}
    assert stored(workshop, "texts") == (DOCUMENTS, DOCUMENTS)
