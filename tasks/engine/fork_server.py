"""The environment of the processes that read untrusted documents, reduced to what they need.

A process exposes the environment that it was started with, in its memory and in `/proc`, even after removing variables.
So the server from which the processes are forked is started without the rest, and without the run's terminal: the
processes report through their results.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
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
"""prefixes of variables that give programs the location of their parts, output conventions and the number of
processors"""
_LONGEST_FOLDER = 70
"""maximum bytes of the temporary folder: 33 more make the path of a socket, of at most 103 (macOS) or 107"""
_lock = threading.Lock()


def needed(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment variables that reading documents may need."""
    return {
        name: value
        for name, value in environment.items()
        if (name in _KEPT or name.startswith(_KEPT_BEGINNINGS)) and not names_secret(name)
    }


def start_fork_server() -> None:
    """Start the server that processes are forked from, with the reduced environment; does nothing if it is running."""
    from multiprocessing import forkserver

    with _lock:
        _choose_socket_folder()
        inherits = util.spawnv_passfds
        # Processes that another thread starts through it meanwhile lack the rest as well.
        util.spawnv_passfds = _started
        try:
            forkserver.ensure_running()
        finally:
            util.spawnv_passfds = inherits


def _choose_socket_folder() -> None:
    """Have `multiprocessing` put its sockets below /tmp if the path of the temporary folder is too long for one."""
    chosen = tempfile.gettempdir()
    if os.name != "posix" or len(os.fsencode(chosen)) <= _LONGEST_FOLDER:
        return
    tempfile.tempdir = "/tmp"  # noqa: S108 - a new folder in it is made for this process alone
    try:
        # multiprocessing keeps the folder of its first call.
        util.get_temp_dir()
    finally:
        tempfile.tempdir = chosen


def clear_environment() -> None:
    """Remove unneeded variables from this process's environment."""
    kept = needed(dict(os.environ))
    for name in os.environ.keys() - kept.keys():
        del os.environ[name]


def _started(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """Start a process like `multiprocessing`, which has no parameter for the environment."""
    process = subprocess.Popen(
        list(args),
        executable=path,
        pass_fds=passfds,
        env=needed(dict(os.environ)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # multiprocessing waits for the process.
    process.returncode = 0
    return process.pid
