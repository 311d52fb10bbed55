"""Processes that answer requests, and the version of the corpus that each follows."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from parquetry.serving.state.folder import PRIVATE_FILE
from parquetry.storage.files.durable import PRIVATE

FOLDER = "workers"
_POLL_SECONDS = 0.02
_SAME_SECONDS = 0.05
"""seconds by which two times of the start of one process may differ"""


@dataclass(frozen=True, slots=True)
class ThisProcess:
    """Identity of this process, which no later process with the same number has."""

    pid: int
    started: str
    """start of the process, seconds since 1970"""

    @staticmethod
    def get() -> ThisProcess:
        """Return the identity of the process that calls."""
        return _identity(os.getpid())


@cache
def _identity(pid: int) -> ThisProcess:
    return ThisProcess(pid, repr(psutil.Process(pid).create_time()))


def is_alive(pid: int | None, started: str | None) -> bool:
    """Return True if a process still runs.

    Args:
        pid: number of the process.
        started: its start, as in `ThisProcess`.
    """
    if pid is None or started is None:
        return False
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - float(started)) <= _SAME_SECONDS
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False


class WorkerRecord:
    """The record of this process: `workers/<pid>.json` in the state folder.

    Args:
        state: state folder of the service.
    """

    def __init__(self, state: Path) -> None:
        self._process = ThisProcess.get()
        folder = state / FOLDER
        folder.mkdir(PRIVATE, exist_ok=True)
        self._file = folder / f"{self._process.pid}.json"

    def announce(self, version: int) -> None:
        """Record that from now on this process answers from a version or a later one."""
        record = {"pid": self._process.pid, "started": self._process.started, "version": version}
        temporary = self._file.with_suffix(".new")
        descriptor = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(record, stream)
        temporary.replace(self._file)

    def withdraw(self) -> None:
        """Remove the record: this process no longer answers."""
        self._file.unlink(missing_ok=True)


def versions_followed(state: Path) -> dict[int, int]:
    """Return the version that each live process follows, by its number; records of dead ones are removed."""
    followed = {}
    for file in (state / FOLDER).glob("*.json"):
        try:
            record = json.loads(file.read_text("utf-8"))
            pid, started, version = int(record["pid"]), str(record["started"]), int(record["version"])
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError):
            # Nobody can follow a version under a record that no process of ours wrote.
            file.unlink(missing_ok=True)
            continue
        if is_alive(pid, started):
            followed[pid] = version
        else:
            file.unlink(missing_ok=True)
    return followed


def wait_until_followed(state: Path, version: int, timeout: float) -> bool:
    """Wait until every live process answers from a version or a later one.

    Args:
        state: state folder of the service.
        version: version of the corpus.
        timeout: seconds.

    Returns:
        False if one of them did not within the time.
    """
    deadline = time.monotonic() + timeout
    while any(each < version for each in versions_followed(state).values()):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
