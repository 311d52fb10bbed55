"""A process of a pool: its end in the program, which hands it tasks, and its own, which carries them out.

Each has a connection of its own. One that processes share ends for all of them once one is killed while it sends: it
keeps the lock, or has sent half a message.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from time import monotonic
from traceback import format_exc
from typing import Any

SEND_SECONDS = 60.0
"""seconds in which a process that is ready has to take a part of a task"""
_NO_MEMORY = 12
"""exit code of a process that has no memory for a task (ENOMEM)"""
_EXIT_SECONDS = 5.0
"""seconds in which a process whose connection ended has to exit, or its exit code is unknown"""
_exits = threading.Lock()
"""held while a process is started or waited for: `multiprocessing` reads the exit codes of all processes with each
start, and of two threads that read one at once, only one gets it"""


class ProcessDied(Exception):
    """The process of a task died.

    Args:
        exitcode: exit code of the process, or minus the number of the signal that ended it.
    """

    def __init__(self, exitcode: int | None) -> None:
        super().__init__(_end_of(exitcode))
        self.exitcode = exitcode


def _end_of(exitcode: int | None) -> str:
    """Return how a process ended, as `died (exit code 3)`."""
    try:
        name = signal.Signals(-(exitcode or 0)).name
    except ValueError:
        return f"died (exit code {exitcode})"
    return f"was killed by {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")


@dataclass(slots=True, eq=False)
class Task:
    """A task of a pool, and the future of its result."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    seconds: float
    """seconds that it may take"""
    future: Future[Any] = field(default_factory=Future)
    attempts: int = 0
    """processes that died while it was sent to them"""
    is_large: bool = False
    """True if it is known to be too large to be sent in advance"""

    def begin(self) -> bool:
        """Return False if it was cancelled."""
        return self.future.running() or self.future.set_running_or_notify_cancel()

    def end(self, message: Any) -> None:
        """Take what its process answered."""
        try:
            is_right, result = ForkingPickler.loads(message)
        except Exception as error:  # noqa: BLE001 - any, of the classes of libraries
            is_right, result = False, error
        if is_right:
            self.future.set_result(result)
        else:
            self.future.set_exception(result)


class PooledProcess:
    """A process, and the connection to it; other threads than that of its pool may only kill it."""

    def __init__(self, context: Any, start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.is_ready = False
        self.tasks: deque[Task] = deque()
        """the task that it works on, and one that it has in advance"""
        self.had = 0
        """tasks that it had so far"""
        self.ends_at = 0.0
        """time at which its task takes too long"""
        self.connection, theirs = context.Pipe()
        _wait_at_most(self.connection, socket.SO_SNDTIMEO, SEND_SECONDS)
        with theirs, _exits:
            self._process = context.Process(target=_work, args=(theirs, start, arguments), daemon=True)
            self._process.start()

    def send(self, task: Task, message: Any) -> None:
        self.connection.send_bytes(message)
        self.tasks.append(task)
        self.had += 1
        if len(self.tasks) == 1:
            self._begin()

    def done(self) -> Task:
        """Return the task that it is done with."""
        task = self.tasks.popleft()
        if self.tasks:
            self._begin()
        return task

    def _begin(self) -> None:
        seconds = self.tasks[0].seconds
        self.ends_at = monotonic() + seconds
        _wait_at_most(self.connection, socket.SO_RCVTIMEO, seconds)

    def death(self) -> ProcessDied | MemoryError:
        """Return why a process whose connection ended has died."""
        with _exits:
            self._process.join(_EXIT_SECONDS)
            code = self._process.exitcode
        return MemoryError() if code == _NO_MEMORY else ProcessDied(code)

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Kill it, and give back what it takes here."""
        self._process.kill()
        with _exits:
            self._process.join()
        self.connection.close()


def _wait_at_most(connection: Connection, option: int, seconds: float) -> None:
    """Let no part of a message be waited for longer, which fails with BlockingIOError; no limit outside POSIX."""
    if os.name != "posix":
        return
    whole = int(seconds)
    # Zero would be no limit.
    limit = struct.pack("ll", whole, max(1, int((seconds - whole) * 1e6)))
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        # It may have been given the default timeout of the program, and the connection with it.
        ours.setblocking(True)
        ours.setsockopt(socket.SOL_SOCKET, option, limit)


def _work(connection: Connection, start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Carry out tasks until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Daemonic here alone, where it ends with the program: what reads documents may start processes.
    multiprocessing.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
    start(*arguments)
    connection.send_bytes(b"ready")
    with suppress(EOFError):
        while True:
            connection.send_bytes(_answer(*_received(connection)))


def _received(connection: Connection) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    try:
        task: tuple[Callable[..., Any], tuple[Any, ...]] = connection.recv()
    except MemoryError:
        os._exit(_NO_MEMORY)
    return task


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Carry out a task, and return the message that answers it."""
    try:
        return ForkingPickler.dumps((True, function(*arguments)))
    except MemoryError:
        return ForkingPickler.dumps((False, MemoryError()))
    except BaseException as error:  # noqa: BLE001 - raised where its result is waited for
        return _told(error)


def _told(error: BaseException) -> Any:
    """Return the message that tells of an error, with the place where it was raised."""
    error.add_note(format_exc())
    try:
        message = ForkingPickler.dumps((False, error))
        # Some errors can be sent and not received.
        ForkingPickler.loads(message)
    except Exception:  # noqa: BLE001 - any, of the classes of libraries
        message = ForkingPickler.dumps((False, RuntimeError(format_exc())))
    return message
