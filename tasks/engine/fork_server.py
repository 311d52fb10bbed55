"""The environment of the processes that read strangers' documents: nothing in it that they have no need of.

A process shows the environment that it was started with, in its memory and in `/proc`, whatever it removes from it
later. So the server that the processes are forked from is started without the rest, and without the run's terminal:
what its processes have to say comes back as a result.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from multiprocessing import util
from typing import Any

from parquetry.known_secrets import names_secret

_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV"),
        *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT"),
    }
)
_KEPT_BEGINNINGS = ("LC_", "PYTHON", "LD_", "DYLD_", "OMP_", "OPENBLAS_", "MKL_", "MALLOC_", "XDG_", "COV")
"""of the variables that tell programs where their parts are, how to write and how many processors to use"""
_lock = threading.Lock()


def needed(environment: dict[str, str]) -> dict[str, str]:
    """The variables that reading documents may need."""
    return {
        name: value
        for name, value in environment.items()
        if (name in _KEPT or name.startswith(_KEPT_BEGINNINGS)) and not names_secret(name)
    }


def start_fork_server() -> None:
    """Start the server that processes are forked from, with the needed environment alone; nothing if it is there."""
    from multiprocessing import forkserver

    with _lock:
        inherits = util.spawnv_passfds
        # What another thread starts through it meanwhile does without the rest as well.
        util.spawnv_passfds = _started
        try:
            forkserver.ensure_running()
        finally:
            util.spawnv_passfds = inherits


def clear_environment() -> None:
    """Remove from this process's environment what it has no need of."""
    kept = needed(dict(os.environ))
    for name in os.environ.keys() - kept.keys():
        del os.environ[name]


def _started(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """Start a process as `multiprocessing` does, which has no word for the environment."""
    process = subprocess.Popen(
        list(args),
        executable=path,
        pass_fds=passfds,
        env=needed(dict(os.environ)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # It is multiprocessing that waits for it.
    process.returncode = 0
    return process.pid
