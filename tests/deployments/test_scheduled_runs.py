"""A schedule fires and its run publishes, on a real server, for both ways of deploying."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployments.served import PATIENCE, Api, other_repository, running, serving
from tests.servers import session_model
from tests.servers.chat_server import ChatServer
from tests.sessions_shelf import Shelf
from tests.workshop import Workshop

ROOT = Path(__file__).parents[2]
OFTEN = "* * * * *"
"""every minute"""
TEA = "Tea: I drink green tea in the morning."

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def shelf(tmp_path) -> Iterator[Shelf]:
    """Add sessions beside the documents, for the same corpus."""
    with ChatServer(session_model.answer) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.write("a.json", [f"individual/preference: {TEA}"])
        yield shelf


def settings(library: Workshop, shelf: Shelf, schedule: str = "") -> str:
    return f"""[corpus]
root = "{library.settings.corpus.root}"
[extraction]
workers = 1
[llm]
model = "m"
base_url = "{shelf.url}"
[[source]]
name = "docs"
uri = "{library.folder}"
{schedule}
[[source]]
name = "chats"
uri = "{shelf.folder}"
content = "sessions"
user_id = "ada"
{schedule}
"""


def assert_published(api: Api, names: tuple[str, str], library: Workshop, shelf: Shelf) -> None:
    """Check that scheduled runs published documents and entries from sessions, and logged it."""
    for name in names:
        run = api.publishing_run(name)
        assert run["created_by"]["type"] == "SCHEDULE"
    assert sorted(row.path for row in library.rows().values() if row.source == "docs") == ["0.md", "1.md", "2.md"]
    assert shelf.live() == [TEA]


def test_schedules_that_are_served_fire_and_publish(library, shelf, tmp_path):
    with serving(settings(library, shelf, f'schedule = "{OFTEN}"'), tmp_path) as service:
        assert f"refresh/docs: {OFTEN} (UTC)" in service.output.read_text()
        assert_published(service, ("refresh/docs", "sessions/chats"), library, shelf)
        assert "no run is planned" not in service.output.read_text()


def prefect(*arguments: str) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_schedules_of_a_work_pool_fire_and_a_worker_publishes(library, shelf, tmp_path, server, monkeypatch):
    """The file's schedule is nightly, too far away: its deployments get one more schedule."""
    file = tmp_path / "parquetry.toml"
    # The nightly deployment for sessions exists even without a source of sessions.
    whole = settings(library, shelf)
    file.write_text(whole.rpartition("[[source]]")[0])
    monkeypatch.setenv("PARQUETRY_POOL", "documents")
    monkeypatch.setenv("PARQUETRY_CONFIG", str(file))
    server.api("/work_pools/", {"name": "documents", "type": "process"})
    prefect("deploy", "--all", "--prefect-file", str(ROOT / "deployments" / "prefect.yaml"))
    names = ("refresh/nightly", "sessions/nightly")
    for name in names:
        deployment = server.api(f"/deployments/name/{name}")["id"]
        server.api(f"/deployments/{deployment}/schedules", [{"schedule": {"cron": OFTEN}, "active": True}])
    worker = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "documents", "--type", "process"]
    with running(worker, dict(os.environ), tmp_path / "worker.txt", other_repository(tmp_path)):
        idle = server.scheduled_run("sessions/nightly")
        assert idle["state_type"] == "COMPLETED", idle["state"]
        nothing = 'Nothing to do: no source with content = "sessions" is configured.'
        assert idle["state"]["message"] == nothing
        file.write_text(whole)
        assert_published(server, names, library, shelf)
