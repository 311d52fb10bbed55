"""A Prefect server of this program's own, for runs on a machine that has none. Imports nothing of Prefect."""

from __future__ import annotations

import os
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

from knowledge.errors import ParquetryError

START_SECONDS = 180
"""a first start writes its database and compiles all of Prefect: half a minute on a busy machine"""
STOP_SECONDS = 15

ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
}


class ServerFailed(ParquetryError):
    """The Prefect server did not start."""


class Server:
    """A Prefect server in a process of its own, with its own home, on a free port of loopback.

    Args:
        home: folder of its database and log; kept from run to run, so that migrations happen once.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._log = home / "server.log"
        port = _free_port()
        self.api_url = f"http://127.0.0.1:{port}/api"
        home.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "flows.guarded", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--no-services"],
                stdin=subprocess.PIPE,  # its end tells the server that this program is gone
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )

    def _environment(self) -> Mapping[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_API_")}
        return {**inherited, **ENVIRONMENT, "PREFECT_HOME": str(self._home)}

    def wait(self) -> None:
        """Return when the server answers.

        Raises:
            ServerFailed: it stopped, or did not answer in time; says where its log is.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServerFailed(f"the Prefect server stopped at once; its log is {self._log}. Or use --direct")
            try:
                with urlopen(f"{self.api_url}/health", timeout=5) as answer:  # noqa: S310 - our own loopback URL
                    if answer.status == 200:
                        return
            except (URLError, OSError):
                time.sleep(0.1)
        raise ServerFailed(f"the Prefect server did not answer in {START_SECONDS} s; its log is {self._log}")

    def stop(self) -> None:
        """Stop it in order; kill it if it does not."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def own_server() -> Iterator[Server]:
    """A server that is being started; call `wait` before the first use. Stopped at the end."""
    with _home() as home:
        server = Server(home)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def _home() -> Iterator[Path]:
    """The kept home if no other run is using it, else one for this run alone."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parquetry" / "prefect"
    held = _lock_file(base)
    if held is not None:
        with held:
            yield base
        return
    temporary = Path(tempfile.mkdtemp(prefix="parquetry-prefect-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _lock_file(folder: Path) -> IO[str] | None:
    """The open file whose lock says that this run uses the folder; None if another does, or nobody can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / "lock").open("w")
    except OSError:
        return None
    if _locked(held.fileno()):
        return held
    held.close()
    return None


def _locked(descriptor: int) -> bool:
    """Take the lock that ends with this process, or tell that another has it."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
