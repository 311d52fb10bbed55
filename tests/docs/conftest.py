"""One refreshed example handbook for all pages, and a copy of it for each."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from documentation import ROOT


@dataclass(frozen=True)
class Desk:
    """A folder like a fresh checkout in which `make demo` has run."""

    folder: Path
    refreshed: str
    """what the refresh printed"""

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        bin_folder = Path(sys.executable).parent
        paths = {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **paths},
            capture_output=True,
            text=True,
            timeout=240,
        )

    def shell(self, code: str) -> subprocess.CompletedProcess[str]:
        return self.run(["bash", "-euo", "pipefail", "-c", code])


@pytest.fixture(scope="session")
def original(tmp_path_factory) -> Desk:
    """Refreshed once, whichever of the test processes comes first: reading its pictures takes seconds."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, output = shared / "documented", shared / "documented.out"
    with (shared / "documented.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not output.exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(ROOT / "examples", folder / "examples")
            done = Desk(folder, "").shell("parquetry refresh --direct --config examples/parquetry.toml")
            assert (done.returncode, done.stderr) == (0, "")
            output.write_text(done.stdout, "utf-8")
        return Desk(folder, output.read_text("utf-8"))


@pytest.fixture(scope="module")
def copy(original, tmp_path_factory) -> Callable[[], Desk]:
    """Makes copies that may be changed."""

    def make() -> Desk:
        folder = tmp_path_factory.mktemp("desk") / "checkout"
        shutil.copytree(original.folder, folder)
        return Desk(folder, original.refreshed)

    return make
