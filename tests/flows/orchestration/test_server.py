"""A Prefect server started by Parquetry: on its own port, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from parquetry.flows.orchestration import server as servers
from parquetry.flows.orchestration.server import Server, ServerFailed, is_free, lasting_server


class Healthy(BaseHTTPRequestHandler):
    """A Prefect server started by another program."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger():
    """The port of a healthy server started by another program."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_server_whose_port_somebody_else_took_is_not_mistaken_for_that_one(stranger, tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "START_SECONDS", 3)
    assert not is_free(stranger)
    server = Server(tmp_path, stranger)
    try:
        with pytest.raises(ServerFailed, match=r"its log is .*server\.log"):
            server.wait()
    finally:
        server.stop()


@pytest.mark.slow
def test_connection_is_still_open_when_a_client_uses_it_again(tmp_path):
    with lasting_server(tmp_path, 0) as server:
        server.wait()
        connection = HTTPConnection(server.ui_url.removeprefix("http://"), timeout=30)
        for pause in (0, 7):
            # A closed connection is opened again only for requests that were not sent yet.
            time.sleep(pause)
            connection.request("GET", "/api/health")
            held = connection.sock
            assert connection.getresponse().read() == b"true"
            assert connection.sock is held
        connection.close()


def test_home_that_is_in_use_is_refused(tmp_path):
    held = servers._lock(tmp_path)
    assert held is not None
    with held, pytest.raises(ServerFailed, match="being served already"), lasting_server(tmp_path, 0):
        pass


def test_each_run_at_a_time_has_a_home_of_its_own_and_finds_it_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with servers._home_of_a_run() as first, servers._home_of_a_run() as second:
        assert first != second
    with servers._home_of_a_run() as again:
        assert again == first


def test_long_history_of_single_runs_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(servers, "LARGEST_DATABASE", 10)
    with servers._home_of_a_run() as home:
        (home / "prefect.db").write_bytes(b"x" * 11)
        (home / "prefect.db-wal").write_bytes(b"x")
    with servers._home_of_a_run() as again:
        assert again == home
        assert not list(home.glob("prefect.db*"))


@pytest.mark.slow
def test_a_flow_of_a_test_without_a_server_fails_and_starts_none(tmp_path):
    """Prefect would start one, which nothing ends in order (`tests/conftest.py`)."""
    flow = "import prefect; prefect.flow(lambda: print('it ran'), name='oak')()"
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    done = subprocess.run(
        [sys.executable, "-c", flow],
        env={**environment, "PREFECT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "No Prefect API URL provided" in done.stderr
