"""The processes that read untrusted documents, started with what they need and nothing else.

A process exposes the environment that it was started with, in its memory and in `/proc`, even after removing variables.
So the server from which the processes are forked is started without the rest, and without the run's terminal: the
processes report through their results. Nor do they import the program that started them, as processes of
`multiprocessing` do: its script may have no `if __name__ == "__main__"`, and takes time to import.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import context, spawn, util
from typing import Any
from weakref import WeakSet

from parquetry.known_secrets import names_secret
from parquetry.process_folder import process_folder

_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV"),
        *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT"),
    }
)
_KEPT_BEGINNINGS = ("LC_", "PYTHON", "LD_", "DYLD_", "OMP_", "OPENBLAS_", "MKL_", "MALLOC_", "XDG_", "COV")
"""prefixes of variables that give programs the location of their parts, output conventions and the number of
processors"""
_LONGEST_FOLDER = 57
"""maximum bytes of the temporary folder: 46 more make the path of a socket, of at most 103 (macOS) or 107"""
_lock = threading.Lock()
_pools: WeakSet[object] = WeakSet()
"""pools whose processes are forked from the server"""
_FORKS = "forkserver" in multiprocessing.get_all_start_methods()


def needed(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment variables that reading documents may need."""
    return {
        name: value
        for name, value in environment.items()
        if (name in _KEPT or name.startswith(_KEPT_BEGINNINGS)) and not names_secret(name)
    }


class ReadingProcess(context.ForkServerProcess if _FORKS else context.SpawnProcess):  # type: ignore[misc]
    """A process that does not import the program that started it."""

    def start(self) -> None:
        if _FORKS:
            # A server that died would be started again with all that this program's environment holds.
            start_fork_server()
        with _program_hidden(), _children_allowed():
            super().start()


class _Context(context.ForkServerContext if _FORKS else context.SpawnContext):  # type: ignore[misc]
    Process = ReadingProcess


@contextmanager
def _program_hidden() -> Iterator[None]:
    """Leave the program's script out of what `multiprocessing` tells a new process, which has no parameter for it."""
    with _lock:
        tell, here = spawn.get_preparation_data, threading.get_ident()

        def without_program(name: str) -> dict[str, Any]:
            told = tell(name)
            if threading.get_ident() != here:
                # A process of the program's own, which may run its functions.
                return told
            return {key: value for key, value in told.items() if not key.startswith("init_main")}

        spawn.get_preparation_data = without_program
        try:
            yield
        finally:
            spawn.get_preparation_data = tell


@contextmanager
def _children_allowed() -> Iterator[None]:
    """Start a process from a daemonic one, such as a worker of Dask.

    `multiprocessing` forbids this, because such children would outlive a killed parent; these end with it.
    """
    configuration: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    daemon = configuration.pop("daemon", None)
    try:
        yield
    finally:
        if daemon is not None:
            configuration["daemon"] = daemon


READING = "parquetry.tasks.engine.reading_process"
"""module of the processes that read documents"""


def start_ahead(modules: Sequence[str] = ()) -> None:
    """Start the server that these processes are forked from, which imports for a while, and return at once.

    Args:
        modules: what they will need besides `READING`. Neither has to be imported here.
    """
    reading_context(READING, *modules)


def reading_context(*preloaded: str) -> context.BaseContext:
    """Return the context that starts processes which read documents.

    The fork server, where there is one, is started from a program without threads.

    Args:
        preloaded: modules that the fork server imports, once for all its processes; ignored if it is running.
    """
    chosen = _Context()
    if _FORKS:
        chosen.set_forkserver_preload(list(preloaded))
        start_fork_server()
    return chosen


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


def keep_fork_server(pool: object) -> None:
    """Have the server stay until a pool of its processes is closed."""
    with _lock:
        _pools.add(pool)


def release_fork_server(pool: object) -> None:
    """Tell that a pool is closed."""
    with _lock:
        _pools.discard(pool)


def end_fork_server() -> None:
    """End the server, which takes 20 MB and more, unless a pool needs it; the next use starts it again."""
    if not _FORKS:
        return
    from multiprocessing import forkserver

    with _lock:
        if not _pools:
            # There is no public way.
            forkserver._forkserver._stop()  # type: ignore[attr-defined]


def _choose_socket_folder() -> None:
    """Have `multiprocessing` put its sockets in the folder of this process, which a killed one does not leave behind.

    It is below /tmp if the path of the temporary folder is too long for a socket.
    """
    configuration: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if os.name != "posix" or configuration.get("tempdir") is not None:
        return
    is_short = len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_FOLDER
    configuration["tempdir"] = str(process_folder(None if is_short else "/tmp"))  # noqa: S108 - a private folder in it


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
