"""One refreshed example handbook for all pages, and a copy of it for each."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.documentation import ROOT


@dataclass(frozen=True)
class Done:
    """Result of a piece of code."""

    code: int
    stdout: str
    stderr: str


def environment() -> dict[str, str]:
    """Return the environment of commands and programs."""
    paths = [str(ROOT), str(ROOT / "tests")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "80"}


class Desk:
    """A folder like a fresh checkout after `make demo`.

    Args:
        folder: the checkout.
        refreshed: output of the refresh.
        commands: socket of the command server.
    """

    def __init__(self, folder: Path, refreshed: str, commands: Path) -> None:
        self.folder = folder
        self.refreshed = refreshed
        self._commands = commands
        self._server: IO[str] | None = None

    def run(self, command: list[str]) -> Done:
        done = subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=240)
        return Done(done.returncode, done.stdout, done.stderr)

    def python(self, code: str) -> Done:
        return self.run([sys.executable, "-c", code])

    def shell(self, code: str) -> list[Done]:
        """Run shell code; lines that only call `parquetry` share one process."""
        lines = code.strip().splitlines()
        if not all(line.startswith("parquetry ") and not set(line) & set("><|&;$`\\") for line in lines):
            return [self.run(["bash", "-euo", "pipefail", "-c", code])]
        return [self.parquetry(shlex.split(line)[1:]) for line in lines]

    def parquetry(self, arguments: list[str]) -> Done:
        """Run one command."""
        if self._server is None:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(self._commands))
                self._server = connection.makefile("rw")
            self._send(str(self.folder))
        self._send(arguments)
        return Done(**json.loads(self._server.readline()))

    def _send(self, line: object) -> None:
        assert self._server is not None
        self._server.write(json.dumps(line) + "\n")
        self._server.flush()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


@pytest.fixture(scope="session")
def commands() -> Iterator[Path]:
    """Return the socket of a server that runs the commands of all pages: starting Python takes longer than most."""
    # The path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="pq-", dir="/tmp") as folder:
        place = Path(folder) / "commands"
        server = subprocess.Popen(
            [sys.executable, "-m", "command_server", str(place)], env=environment(), stdin=subprocess.PIPE
        )
        while not place.exists():
            assert server.poll() is None
            time.sleep(0.02)
        yield place
        try:
            server.communicate(timeout=60)
        finally:
            server.kill()
            server.wait()


@pytest.fixture(scope="session")
def original(tmp_path_factory, commands) -> Iterator[Desk]:
    """Refresh the handbook once, in the first test process that needs it: reading its images takes seconds."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    desk, output = Desk(shared / "documented", "", commands), shared / "documented.out"
    with (shared / "documented.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not output.exists():
            shutil.rmtree(desk.folder, ignore_errors=True)
            shutil.copytree(ROOT / "examples", desk.folder / "examples")
            done = desk.parquetry(["refresh", "--direct", "--config", "examples/parquetry.toml"])
            # On a busy machine it says which image it has been reading for half a minute.
            told = [line for line in done.stderr.splitlines() if not line.startswith("  reading ")]
            assert (done.code, told) == (0, [])
            output.write_text(done.stdout, "utf-8")
    desk.refreshed = output.read_text("utf-8")
    yield desk
    desk.close()


@pytest.fixture
def copy(original, commands, tmp_path) -> Iterator[Desk]:
    """Return a checkout that the test may change."""
    shutil.copytree(original.folder, tmp_path / "checkout")
    desk = Desk(tmp_path / "checkout", original.refreshed, commands)
    yield desk
    desk.close()
