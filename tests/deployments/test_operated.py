"""Services of a server for the deployments beyond starting runs, on one real server for all of these tests."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from parquetry.flows.orchestration.server import lasting_server
from tests.deployments.served import FINAL, PATIENCE, Api, environment, running
from tests.deployments.test_notifications import Webhook
from tests.prefect_homes import fill_home
from tests.servers.embedding_server import EmbeddingServer, Reply, Request, embeddings, refusal
from tests.written_bytes import holding

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("operated")]

KEY = "sk-5f3a90c1d27b4e6f8a12c3d4e5f60718"
SCHEDULE = 'schedule = "0 0 1 1 *"'


@dataclass
class Operated:
    """A server, and the deployments of a settings file that are served with it."""

    server: Api
    folder: Path
    output: Path
    planned: dict[str, int]
    """planned runs of each deployment of the first service, which was killed"""

    @property
    def file(self) -> Path:
        return self.folder / "parquetry.toml"

    def settings(self, url: str, *sources: str) -> None:
        """Write the settings file: a corpus with an embedding service, and sources in folders of their names."""
        service = f'[embedding]\nbase_url = "{url}"\nattempts = 1\ndimension = 8\n'
        corpus = f'[corpus]\nroot = "{self.folder / "corpus"}"\nembedder = "openai:m"\n'
        text = f"{corpus}[extraction]\nworkers = 1\n[refresh]\nmax_removed_documents = 1\n{service}"
        for name in sources:
            (self.folder / name).mkdir(exist_ok=True)
            text += f'[[source]]\nname = "{name}"\nuri = "{self.folder / name}"\n{SCHEDULE}\n'
        self.file.write_text(text)

    def write(self, *names: str) -> None:
        for name in names:
            (self.folder / "docs" / f"{name}.md").write_text(f"# {name}\n\nCount the boards.\n")

    def runs(self, deployment: str, *types: str) -> list[dict[str, Any]]:
        """Return the flow runs of a deployment in states of these types."""
        found = self.server.api(f"/deployments/name/{deployment}")["id"]
        state = {"type": {"any_": list(types)}}
        body = {"deployments": {"id": {"any_": [found]}}, "flow_runs": {"state": state}}
        return self.server.api("/flow_runs/filter", body)

    def refresh(self, **parameters: Any) -> dict[str, Any]:
        """Request a refresh; return the run once it ended."""
        return self.server.end_of(self.server.run("refresh/on-demand", **parameters))


def program(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def deployed(operated: Operated) -> Iterator[subprocess.Popen[str]]:
    """Serve the settings file with the server."""
    command = [sys.executable, "-u", "-m", "parquetry.deployments", "--config", str(operated.file)]
    with running(command, dict(os.environ), operated.output) as process:
        operated.server.until(lambda: "Serving;" in operated.output.read_text())
        yield process


@pytest.fixture(scope="module")
def operated(tmp_path_factory) -> Iterator[Operated]:
    """Serve two sources, end without order, and serve again without one of them."""
    folder = tmp_path_factory.mktemp("operated")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PREFECT_") or name == "OPENAI_API_KEY"]:
            patch.delenv(name)
        often = {"PREFECT_SERVER_SERVICES_DB_VACUUM_LOOP_SECONDS": "2", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
        for name, value in environment(folder, **often).items():
            patch.setenv(name, value)
        fill_home(folder / "server")
        with lasting_server(folder / "server", 0) as server:
            server.wait()
            patch.setenv("PREFECT_API_URL", server.api_url)
            operated = Operated(Api(server.ui_url), folder, folder / "output.txt", {})
            operated.settings("http://127.0.0.1:9/v1", "docs", "old")
            with deployed(operated) as process:
                names = ("refresh/docs", "refresh/old")
                operated.server.until(lambda: all(operated.runs(name, "SCHEDULED") for name in names))
                operated.planned = {name: len(operated.runs(name, "SCHEDULED")) for name in names}
                process.send_signal(signal.SIGKILL)
                process.wait(PATIENCE)
            operated.settings("http://127.0.0.1:9/v1", "docs")
            with deployed(operated):
                yield operated


def test_schedule_of_a_removed_source_is_gone_with_its_planned_runs(operated):
    assert min(operated.planned.values()) > 0
    assert "refresh/old: no longer scheduled by the settings; its schedule is cleared." in operated.output.read_text()
    assert operated.server.api("/deployments/name/refresh/old")["schedules"] == []
    assert operated.runs("refresh/old", "SCHEDULED") == []
    assert len(operated.server.api("/deployments/name/refresh/docs")["schedules"]) == 1
    operated.server.until(lambda: operated.runs("refresh/docs", "SCHEDULED"))


class Locked:
    """An embedding service that repeats the key it gets, and refuses until it is opened."""

    def __init__(self) -> None:
        self.is_open = False

    def __call__(self, request: Request) -> Reply:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        return embeddings(request) if self.is_open else refusal(401, f"wrong key {KEY}")


def test_secret_in_a_block_is_used_by_a_run_and_kept_nowhere(operated):
    """The settings file is named by a variable; its service gets the key from a block, repeats it, then takes it."""
    operated.write("oak", "elm")
    script = "import sys; from prefect.blocks.system import Secret; from prefect.variables import Variable; "
    script += "Secret(value=sys.argv[1]).save('openai'); Variable.set('parquetry_config', sys.argv[2]); "
    script += "Variable.set('parquetry_secrets', {'OPENAI_API_KEY': 'openai'})"
    change = "import json, sys; from prefect.variables import Variable; "
    change += "Variable.set('parquetry_secrets', json.loads(sys.argv[1]), overwrite=True)"
    locked = Locked()
    with EmbeddingServer(locked) as service:
        operated.settings(service.url, "docs")
        program("-c", script, KEY, str(operated.file))
        failed = operated.refresh(config=None)
        assert "wrong key ***" in failed["state"]["message"], failed["state"]
        locked.is_open = True
        published = operated.refresh(config=None)
        assert published["state_type"] == "COMPLETED", published["state"]
    keys = {each["key"] for each in operated.server.api("/artifacts/filter", {})}
    assert keys == {f"refresh-{name}-default" for name in ("report", "failures", "progress", "sources")}
    server, run = operated.server, published["id"]
    server.until(lambda: any("published version" in line for line in server.log(run)))
    assert holding(operated.folder, {"key": KEY}) == []

    program("-c", change, '{"A": "b"}')
    unknown = operated.refresh()
    assert "has no Secret block 'b', which the Prefect variable parquetry_secrets" in unknown["state"]["message"]
    program("-c", change, "{}")


def changed(source: str, key: str) -> dict[str, Any]:
    """Return an event as a sender without Prefect posts it."""
    resource = {"prefect.resource.id": f"parquetry.source.{source}"}
    event = {"event": "parquetry.source.changed", "resource": resource, "payload": {"key": key}}
    return {**event, "id": str(uuid4()), "occurred": datetime.now(UTC).isoformat()}


def test_events_of_a_bucket_start_a_run_for_each_burst_and_none_without(operated):
    """A burst is collected; no run follows an event of another source, or the end of a window without an event."""
    told = program("-m", "parquetry.deployments.wakeups", "docs", "--wait", "10")
    assert told == "Automation parquetry-wakeup-docs runs refresh/on-demand for docs 10 s after an event.\n"

    def woken(*types: str) -> list[dict[str, Any]]:
        runs = operated.runs("refresh/on-demand", *types)
        return [run for run in runs if (run["created_by"] or {}).get("type") == "AUTOMATION"]

    with EmbeddingServer() as service:
        operated.settings(service.url + '"\napi_key = "sk-none', "docs")
        for count, names in enumerate((("ash", "yew"), ("larch", "lime")), start=1):
            operated.write(*names)
            burst = [changed("docs", f"{name}.md") for name in names for _ in range(5)]
            operated.server.api("/events", [changed("other", "x"), *burst])
            runs = operated.server.until(lambda count=count: woken("COMPLETED")[count - 1 :] and woken("COMPLETED"))
            assert len(runs) == count
    assert len(woken(*FINAL, "SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING")) == 2
    for run in runs:
        assert run["parameters"] == {"config": str(operated.file), "parameters": {"targets": ["docs"]}}
        operated.server.until(lambda run=run: any("2 added" in line for line in operated.server.log(run["id"])))


def test_webhook_is_called_when_a_run_is_refused(operated):
    with Webhook() as webhook, EmbeddingServer() as service:
        program("-m", "parquetry.deployments.notifications", webhook.url, "--event", "parquetry.run.refused")
        operated.settings(service.url + '"\napi_key = "sk-none', "docs")
        operated.write("fir", "box", "bay")
        assert operated.refresh()["state_type"] == "COMPLETED"
        for file in (operated.folder / "docs").iterdir():
            file.unlink()
        refused = operated.refresh()
        assert refused["state"]["name"] == "Refused"
        operated.server.until(lambda: webhook.got)
        (got,) = webhook.got
    assert got["event"] == "parquetry.run.refused"
    assert got["resource"] == f"parquetry.corpus.{operated.folder / 'corpus'}"
    assert got["payload"]["problem"] in got["text"]
    assert "--allow-removals" in got["text"]


def test_history_is_bounded(operated):
    """A run that ended a month ago goes with its log; one that ended a week ago stays."""
    flow = operated.server.api("/flows/filter", {"flows": {"name": {"any_": ["refresh"]}}})[0]["id"]
    made = {}
    for name in ("old", "young"):
        made[name] = operated.server.api("/flow_runs/", {"flow_id": flow, "name": name})["id"]
        state = {"type": "COMPLETED", "name": "Completed"}
        operated.server.api(f"/flow_runs/{made[name]}/set_state", {"state": state, "force": True})
        line = {"name": "x", "level": 20, "message": f"the log of {name}", "timestamp": "2026-11-26T09:00:00Z"}
        operated.server.api("/logs/", [{**line, "flow_run_id": made[name]}])
    with sqlite3.connect(operated.folder / "server" / "prefect.db", timeout=60) as database:
        for name, days in (("old", 31), ("young", 29)):
            ago = f"datetime(end_time, '-{days} days')"
            changed = database.execute(f"UPDATE flow_run SET end_time = {ago} WHERE name = ?", (name,))
            assert changed.rowcount == 1
    database.close()
    wanted = {"flow_runs": {"id": {"any_": list(made.values())}}}
    operated.server.until(lambda: len(operated.server.api("/flow_runs/filter", wanted)) < 2)
    assert [run["name"] for run in operated.server.api("/flow_runs/filter", wanted)] == ["young"]
    operated.server.until(lambda: operated.server.log(made["old"]) == [])
    assert operated.server.log(made["young"]) == ["the log of young"]


@contextmanager
def impatient(server: Api) -> Iterator[None]:
    """Have the automation wait for one heartbeat and a half, instead of three.

    A shorter time would mark a run that lives, before it is killed, if the machine is busy.
    """
    (automation,) = [each for each in server.api("/automations/filter", {}) if each["name"] == "parquetry-zombies"]
    assert automation["trigger"]["within"] == 90
    path, names = f"/automations/{automation['id']}", ("name", "description", "enabled", "trigger", "actions")
    known = {name: automation[name] for name in names}
    server.api(path, {**known, "trigger": {**known["trigger"], "within": 45}}, "PUT")
    try:
        yield
    finally:
        server.api(path, known, "PUT")


def test_run_whose_process_was_killed_ends_as_crashed(operated):
    operated.write("teak")
    released, asked = threading.Event(), threading.Event()

    def wait(request: Request) -> Reply:
        asked.set()
        released.wait(PATIENCE)
        return embeddings(request)

    with impatient(operated.server), EmbeddingServer(wait) as service:
        operated.settings(service.url + '"\napi_key = "sk-none', "docs")
        refresh = ["parquetry.serving.cli.main", "refresh", "--config", str(operated.file), "--allow-removals"]
        output = operated.folder / "refresh.txt"
        with running([sys.executable, "-m", *refresh], dict(os.environ), output) as process:
            assert asked.wait(PATIENCE), output.read_text()
            body = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}
            # A scheduled run may be under way.
            (run,) = (each for each in operated.server.api("/flow_runs/filter", body) if each["deployment_id"] is None)
            beats = {"name": ["prefect.flow-run.heartbeat"]}, {"id": [f"prefect.flow-run.{run['id']}"]}
            wanted = {"filter": {"event": beats[0], "any_resource": beats[1]}}
            operated.server.until(lambda: operated.server.api("/events/filter", wanted)["events"])
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
        released.set()
        ended = operated.server.end_of(run["id"])
    assert ended["state_type"] == "CRASHED"
    assert "No heartbeat for " in ended["state"]["message"]
