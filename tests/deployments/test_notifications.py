"""The documented recipe for notifications: a real server calls a real webhook."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.deployments.served import PATIENCE
from tests.servers.embedding_server import EmbeddingServer, refusal
from tests.servers.loopback import LoopbackServer, Quiet


class Webhook(LoopbackServer):
    """Record the JSON objects received."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        got = self.got

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["Content-Type"] == "application/json"
                got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

        super().__init__(Handler)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as webhook:
        yield webhook


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_webhook_is_called_for_runs_that_fail_crash_or_are_refused_and_for_no_other(server, webhook, library, tmp_path):
    for _ in range(2):
        told = program("parquetry.deployments.notifications", f"{webhook.url}/alerts")
        assert (told.returncode, told.stderr) == (0, "")
    (automation,) = server.api("/automations/filter", {})
    assert automation["name"] == "parquetry-alerts"

    file = tmp_path / "parquetry.toml"
    source = f'[[source]]\nname = "docs"\nuri = "{library.folder}"\n'
    guard = "[refresh]\nmax_removed_documents = 1\n"
    file.write_text(f'[corpus]\nroot = "{library.settings.corpus.root}"\n[extraction]\nworkers = 1\n{guard}{source}')
    refresh = ("parquetry.serving.cli.main", "refresh", "--config", str(file))
    library.refresh()
    for path in library.folder.iterdir():
        path.unlink()
    refused = program(*refresh)
    assert refused.returncode == 3, refused.stderr
    library.write("new.md", "# New\n\nOne more.\n")
    with EmbeddingServer(lambda _: refusal(401, "wrong key")) as locked:
        service = f'[embedding]\nbase_url = "{locked.url}"\napi_key = "sk-x"\nattempts = 1\ndimension = 8\n'
        other = tmp_path / "other.toml"
        corpus = f'[corpus]\nroot = "{tmp_path / "other"}"\nembedder = "openai:m"\n'
        other.write_text(f"{corpus}[extraction]\nworkers = 1\n{service}{source}")
        assert program("parquetry.serving.cli.main", "refresh", "--config", str(other)).returncode == 4
    flow = server.api("/flows/", {"name": "refresh"})["id"]
    for name, tag, state in (
        ("of-others", "payroll", "Crashed"),
        ("well", "parquetry", "Completed"),
        ("lost", "parquetry", "Crashed"),
    ):
        run = server.api("/flow_runs/", {"flow_id": flow, "name": name, "tags": [tag]})["id"]
        ended = {"type": state.upper(), "name": state, "message": 'The "power" failed.'}
        server.api(f"/flow_runs/{run}/set_state", {"state": ended, "force": True})

    # The server handles events in order: a notification of the last one means that all are handled.
    server.until(lambda: len(webhook.got) >= 3)
    assert sorted(each["state"] for each in webhook.got) == ["Crashed", "Failed", "Refused"]
    by_state = {each["state"]: each for each in webhook.got}
    assert by_state["Refused"]["flow"] == "refresh"
    assert "--allow-removals" in by_state["Refused"]["message"]
    assert by_state["Refused"]["text"].endswith(by_state["Refused"]["message"])
    assert "wrong key" in by_state["Failed"]["message"]
    assert by_state["Refused"]["url"].startswith(f"{server.url}/")
    assert (by_state["Crashed"]["flow_run"], by_state["Crashed"]["message"]) == ("lost", 'The "power" failed.')


@pytest.mark.parametrize("url", ["hooks.example.com/x", "ftp://hooks.example.com"])
def test_what_is_no_address_of_a_webhook_is_refused(url, monkeypatch, tmp_path):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    told = program("parquetry.deployments.notifications", url)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == f"parquetry: {url!r} is not the address of a webhook; it begins with https:// or http://\n"


def test_without_a_server_the_variable_that_names_it_is_told(monkeypatch, tmp_path):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    told = program("parquetry.deployments.notifications", "https://hooks.example.com/x")
    assert told.returncode == 2
    assert told.stderr.startswith("parquetry: PREFECT_API_URL is not set;")
