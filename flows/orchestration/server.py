"""A bundled Prefect server, for runs on a machine without one. Imports nothing of Prefect."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

import psutil
from filelock import lock_descriptor

from parquetry.errors import ParquetryError
from parquetry.process_folder import process_folder
from parquetry.settings.home import user_cache

START_SECONDS = 180
"""seconds; a first start creates the database and compiles all of Prefect: half a minute on a busy machine"""
STOP_SECONDS = 15
MOST_HOMES = 8
"""maximum number of simultaneous runs with a persistent home; further ones use a temporary home"""
LARGEST_DATABASE = 256 * 1024 * 1024
"""bytes; a larger database is deleted with its history of runs, which the corpus's own table `runs` keeps"""

_FILE = 0o600
"""mode of the files in a home"""

ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
}

HEARTBEAT = "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"
HEARTBEAT_SECONDS = 30
"""seconds between two heartbeats of a run, the fewest that Prefect allows; its default is 180"""
KEPT_OPEN = {"PREFECT_SERVER_API_KEEPALIVE_TIMEOUT": "30"}
"""settings of every server, unless the environment has others. Prefect's clients use a connection again for 25 seconds,
and its server closes it after 5: each request in between would fail once and be sent again two seconds later, one for
each batch of a run that takes longer than that"""
LASTING = {
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(30 * 24 * 60 * 60),
    # Concurrency slots of runs killed together with the server are released after its next start.
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
}
"""settings of a server that runs for long, unless the environment has others: its history is kept for 30 days"""


class ServerFailed(ParquetryError):
    """The Prefect server did not start."""


class Server:
    """Prefect server in a separate process with its own home, on loopback. Ends with this program.

    Args:
        home: folder of its database and log; persistent, so that migrations run once.
        port: port to listen on; 0 for any free port.
        lasting: True to run schedules and the UI for as long as deployments are served; False for the API alone.
    """

    def __init__(self, home: Path, port: int = 0, *, lasting: bool = False) -> None:
        self._home = home
        self._lasting = lasting
        self.log = home / "server.log"
        self._port = port or _free_port()
        self.ui_url = f"http://127.0.0.1:{self._port}"
        self.api_url = f"{self.ui_url}/api"
        _make_private(home)
        command = [sys.executable, "-m", "parquetry.flows.orchestration.parent_watch", "server", "start"]
        command += ["--host", "127.0.0.1", "--port", str(self._port)]
        with self.log.open("wb") as log:
            self.log.chmod(_FILE)
            self._process = subprocess.Popen(
                command if lasting else [*command, "--no-services"],
                stdin=subprocess.PIPE,  # closed when this program ends, which stops the server
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                umask=0o077,  # its database holds the runs' parameters and results
                start_new_session=True,  # Ctrl-C must reach this program only, which stops the server last
            )

    def _environment(self) -> Mapping[str, str]:
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_API_", "PREFECT_UI_"))
        }
        own = {**ENVIRONMENT, "PREFECT_HOME": str(self._home), "PREFECT_SERVER_UI_ENABLED": str(self._lasting).lower()}
        if self._lasting:
            own["PREFECT_UI_URL"] = self.ui_url  # for links in messages of its automations
        return {**KEPT_OPEN, **(LASTING if self._lasting else {}), **inherited, **own}

    def wait(self) -> None:
        """Wait until the server answers.

        Raises:
            ServerFailed: the server stopped, or did not answer in time; the message names its log file.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServerFailed(f"the Prefect server stopped at once; its log is {self.log}{self._way_out}")
            try:
                with urlopen(f"{self.api_url}/health", timeout=5) as answer:  # noqa: S310 - our own loopback URL
                    if answer.status == 200 and self._listens():
                        return
            except (URLError, OSError):
                pass
            time.sleep(0.02)
        raise ServerFailed(
            f"the Prefect server did not answer in {START_SECONDS} s; its log is {self.log}{self._way_out}"
        )

    def _listens(self) -> bool:
        """Return True if this server owns the port, which another program may have taken during the start."""
        try:
            connections = psutil.Process(self._process.pid).net_connections("tcp")
        except psutil.NoSuchProcess:
            return False
        return any(each.status == psutil.CONN_LISTEN and each.laddr.port == self._port for each in connections)

    @property
    def _way_out(self) -> str:
        return "" if self._lasting else ". Or use --direct"

    def stop(self) -> None:
        """Stop the server in order; kill it after a timeout or an interrupt."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except BaseException as error:
            self._process.kill()
            self._process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        finally:
            if self._process.stdin:
                self._process.stdin.close()


@contextmanager
def own_server() -> Iterator[Server]:
    """Start a server for one run, and stop it at the end; call `wait` before its first use."""
    with _home_of_a_run() as home:
        server = Server(home)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def lasting_server(home: Path, port: int) -> Iterator[Server]:
    """Start a server with schedules and UI, and stop it at the end; call `wait` before its first use.

    Args:
        home: folder of its database.
        port: port to listen on; 0 for any free port.

    Raises:
        ServerFailed: another program uses this home, or it is not writable.
    """
    held = _lock(home)
    if held is None:
        raise ServerFailed(f"{home} is in use: these deployments are being served already, or it cannot be written")
    with held:
        server = Server(home, port, lasting=True)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def _home_of_a_run() -> Iterator[Path]:
    """Yield the first persistent home not in use by another run, else a temporary one."""
    base = user_cache()
    for number in range(1, MOST_HOMES + 1):
        home = base / f"prefect-{number}"
        held = _lock(home)
        if held is not None:
            with held:
                _forget_long_history(home)
                yield home
            return
    temporary = Path(tempfile.mkdtemp(dir=process_folder()))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _forget_long_history(home: Path) -> None:
    database = home / "prefect.db"
    if database.exists() and database.stat().st_size > LARGEST_DATABASE:
        for file in home.glob("prefect.db*"):
            file.unlink()


def _lock(folder: Path) -> IO[str] | None:
    """Lock a folder and return the open lock file; None if another program holds it or the lock cannot be taken."""
    try:
        _make_private(folder)
        held = (folder / "lock").open("w")
    except OSError:
        return None
    if lock_descriptor(held.fileno(), blocking=False):
        return held
    held.close()
    return None


def _make_private(home: Path) -> None:
    """Create a home accessible to its owner only, or restrict the permissions of an existing one.

    Raises:
        OSError: the home cannot be created, or belongs to another user.
    """
    home.mkdir(0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    for file in home.glob("*"):
        if file.is_file():
            file.chmod(_FILE)


def _free_port() -> int:
    """Return a free port outside the range that systems use for outgoing connections."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    """Return True if a server could listen on a port of loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
