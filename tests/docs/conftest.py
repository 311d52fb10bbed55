"""One refreshed example handbook for all pages, and a copy of it for each."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.documentation import ROOT


@dataclass(frozen=True)
class Done:
    """Result of a piece of code."""

    code: int
    stdout: str
    stderr: str


class Desk:
    """A folder like a fresh checkout after `make demo`.

    Args:
        folder: the checkout.
        refreshed: output of the refresh.
    """

    def __init__(self, folder: Path, refreshed: str) -> None:
        self.folder = folder
        self.refreshed = refreshed
        self._server: subprocess.Popen[str] | None = None

    @property
    def _environment(self) -> dict[str, str]:
        paths = [str(ROOT), str(ROOT / "tests")]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "80"}

    def run(self, command: list[str]) -> Done:
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=240
        )
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
            self._server = subprocess.Popen(
                [sys.executable, "-m", "command_server"],
                cwd=self.folder,
                env=self._environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        self._server.stdin.write(json.dumps(arguments) + "\n")
        self._server.stdin.flush()
        return Done(**json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()


@pytest.fixture(scope="session")
def original(tmp_path_factory) -> Iterator[Desk]:
    """Refresh the handbook once, in the first test process that needs it: reading its images takes seconds."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    desk, output = Desk(shared / "documented", ""), shared / "documented.out"
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
def copy(original, tmp_path) -> Iterator[Desk]:
    """Return a checkout that the test may change."""
    shutil.copytree(original.folder, tmp_path / "checkout")
    desk = Desk(tmp_path / "checkout", original.refreshed)
    yield desk
    desk.close()
