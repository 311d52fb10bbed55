"""Homes for Prefect servers with the database of one that ran before.

To create a database takes a server eight seconds of processor time, of thirteen until it answers. Tests of what a
first start does begin without one.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path

from parquetry.flows.orchestration.server import Server


def fill_home(home: Path, database: str = "prefect.db") -> None:
    """Put a database without runs into the home of a server that was never started.

    Args:
        home: its folder, which may be missing.
        database: name of the file.
    """
    home.mkdir(parents=True, exist_ok=True)
    for file in _made().glob("prefect.db*"):
        shutil.copy(file, home / file.name.replace("prefect.db", database))


def _made() -> Path:
    """Return the home of a server that ran, which the first test process makes for all."""
    place = Path(tempfile.gettempdir())
    home, done = place / "home-of-prefect", place / "home-of-prefect.done"
    with (place / "home-of-prefect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(home, ignore_errors=True)
            server = Server(home)
            try:
                server.wait()
            finally:
                server.stop()
            done.touch()
    return home
