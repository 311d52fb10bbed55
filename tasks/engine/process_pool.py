"""A pool of processes that may die at any moment, each at the cost of the one task that it works on.

Each process has a connection of its own. One that processes share ends for all of them once one is killed while it
sends: it keeps the lock, or has sent half a message.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from time import monotonic
from traceback import format_exc
from typing import Any, TypeVar

Result = TypeVar("Result")
_DEATHS_IN_A_ROW = 10
"""processes that die before they can work, one after the other, before the pool breaks"""
_ATTEMPTS = 3
"""processes that may die before they have the whole of a task, which may be what kills them"""
_AHEAD_BYTES = 4096
"""maximum bytes of a task that a process has in advance: the buffer of a connection takes them, so that nobody waits"""
_MANY = 8
"""waiting tasks for each process above which processes have one in advance, so that none is left without at the end"""
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
class _Task:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    seconds: float
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


class ProcessPool:
    """Carry out tasks in processes, one in each at a time. Used from all threads.

    Args:
        processes: maximum number of processes; one is started for a task that finds no other free.
        tasks_each: tasks after which a process is replaced.
        context: context of `multiprocessing` that starts the processes.
        start: called in each process before its tasks.
        arguments: arguments of `start`.
    """

    def __init__(
        self, *, processes: int, tasks_each: int, context: Any, start: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        self._maximum = processes
        self._tasks_each = tasks_each
        self._start: Callable[[], _Process] = partial(_Process, context, start, arguments)
        self._processes: list[_Process] = []
        self._deaths_in_a_row = 0
        self._thread = threading.Thread(target=self._manage, name="process-pool", daemon=True)
        self._state = threading.Lock()
        """held for what follows, which other threads use"""
        self._waiting: deque[_Task] = deque()
        self._end: BaseException | None = None
        """why no task is taken any more"""
        self._has_free = True
        """True if a process waits for a task"""
        self._woken, self._waker = context.Pipe(duplex=False)
        self._is_woken = False

    def submit(self, function: Callable[..., Result], *arguments: Any, seconds: float) -> Future[Result]:
        """Carry out a task.

        Args:
            function: called in a process, which imports it by its name.
            *arguments: its arguments.
            seconds: seconds after which its process is killed, from when it begins.

        Returns:
            A future that raises what the function raises, `TimeoutError`, `ProcessDied`, or `BrokenProcessPool` if
            processes cannot be started.
        """
        task = _Task(function, arguments, seconds)
        with self._state:
            if self._end is not None:
                raise self._end
            self._waiting.append(task)
            if not self._thread.ident:
                self._thread.start()
            if self._has_free or len(self._processes) < self._maximum:
                self._wake()
        return task.future

    def close(self) -> None:
        """Kill all processes immediately; tasks that are not done are cancelled."""
        if self._waker.closed:
            return
        with self._state:
            self._end = self._end or RuntimeError("the pool is closed")
            self._wake()
        for process in [*self._processes]:
            # The thread may be sending something to one that is stopped.
            process.kill()
        if self._thread.ident:
            self._thread.join()
        self._woken.close()
        self._waker.close()

    def _wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._waker.send_bytes(b"wake")

    def _manage(self) -> None:
        error: BaseException = CancelledError()
        try:
            while self._end is None:
                self._hand_over()
                self._listen()
        except BaseException as caught:  # noqa: BLE001 - raised by every future
            error = caught
        self._abandon(error)

    def _hand_over(self) -> None:
        for process in [*self._processes]:
            self._fill(process)
        starting = sum(not process.is_ready for process in self._processes)
        for _ in range(min(len(self._waiting) - starting, self._maximum - len(self._processes))):
            try:
                self._processes.append(self._start())
            except (OSError, EOFError) as error:
                raise BrokenProcessPool("processes cannot be started") from error

    def _fill(self, process: _Process) -> None:
        """Hand tasks to a process: the one that it can begin with, and one in advance if many wait."""
        while process.is_ready and process.had < self._tasks_each and len(process.tasks) < 2:
            is_ahead = len(process.tasks) == 1
            if is_ahead and len(self._waiting) <= _MANY * self._maximum:
                return
            task = self._next(is_ahead)
            if task is None:
                return
            try:
                message = ForkingPickler.dumps((task.function, task.arguments))
            except Exception as error:  # noqa: BLE001 - any, of the classes of arguments
                task.future.set_exception(error)
                continue
            if is_ahead and len(message) > _AHEAD_BYTES:
                task.is_large = True
                self._put_back(task)
                return
            try:
                process.send(task, message)
            except OSError:
                task.attempts += 1
                if task.attempts < _ATTEMPTS:
                    self._put_back(task)
                else:
                    task.future.set_exception(ProcessDied(process.exitcode))
                self._lose(process)
                return

    def _next(self, is_ahead: bool) -> _Task | None:
        """Take the task that waits longest, unless it is to be sent in advance and too large; None if none waits."""
        with self._state:
            while self._waiting and not (is_ahead and self._waiting[0].is_large):
                task = self._waiting.popleft()
                if task.begin():
                    return task
            if not is_ahead:
                self._has_free = True
        return None

    def _put_back(self, *tasks: _Task) -> None:
        with self._state:
            self._waiting.extendleft(reversed(tasks))

    def _listen(self) -> None:
        """Wait for an answer, the end of a process or of its time, or a task."""
        ends = [process.ends_at for process in self._processes if process.tasks]
        seconds = max(0.0, min(ends) - monotonic()) if ends else None
        heard = wait([self._woken, *(process.connection for process in self._processes)], seconds)
        if self._woken in heard:
            with self._state:
                self._woken.recv_bytes()
                self._is_woken = self._has_free = False
        now = monotonic()
        for process in [*self._processes]:
            if process.connection in heard:
                self._hear(process)
            elif process.tasks and now >= process.ends_at:
                process.tasks.popleft().future.set_exception(TimeoutError())
                self._lose(process)

    def _hear(self, process: _Process) -> None:
        try:
            message = process.connection.recv_bytes()
        except (EOFError, OSError):
            if process.tasks:
                process.tasks.popleft().future.set_exception(ProcessDied(process.exitcode))
            self._lose(process)
            return
        if not process.is_ready:
            process.is_ready, self._deaths_in_a_row = True, 0
            return
        task = process.done()
        if process.had >= self._tasks_each and not process.tasks:
            self._lose(process)
        # The process goes on while this one reads its answer.
        self._fill(process)
        task.end(message)

    def _lose(self, process: _Process) -> None:
        """End a process, and give what it had in advance to others."""
        process.end()
        self._processes.remove(process)
        self._put_back(*process.tasks)
        process.tasks.clear()
        if not process.is_ready:
            self._deaths_in_a_row += 1
            if self._deaths_in_a_row >= _DEATHS_IN_A_ROW:
                raise BrokenProcessPool("processes cannot be started")
        process.is_ready = False

    def _abandon(self, error: BaseException) -> None:
        """End all processes, and fail all tasks."""
        with self._state:
            self._end = self._end or error
            tasks = [*self._waiting]
            self._waiting.clear()
        for process in self._processes:
            process.end()
            tasks.extend(process.tasks)
        for task in tasks:
            if task.begin():
                task.future.set_exception(error)


class _Process:
    """A process, and the connection to it; other threads than that of its pool may only kill it."""

    def __init__(self, context: Any, start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.is_ready = False
        self.tasks: deque[_Task] = deque()
        """the task that it works on, and one that it has in advance"""
        self.had = 0
        """tasks that it had so far"""
        self.ends_at = 0.0
        """time at which its task takes too long"""
        self.connection, theirs = context.Pipe()
        with theirs, _exits:
            self._process = context.Process(target=_work, args=(theirs, start, arguments), daemon=True)
            self._process.start()

    def send(self, task: _Task, message: Any) -> None:
        self.connection.send_bytes(message)
        self.tasks.append(task)
        self.had += 1
        if len(self.tasks) == 1:
            self._begin()

    def done(self) -> _Task:
        """Return the task that it is done with."""
        task = self.tasks.popleft()
        if self.tasks:
            self._begin()
        return task

    def _begin(self) -> None:
        self.ends_at = monotonic() + self.tasks[0].seconds

    @property
    def exitcode(self) -> int | None:
        """The exit code of a process whose connection ended."""
        with _exits:
            self._process.join(_EXIT_SECONDS)
            code: int | None = self._process.exitcode
        return code

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Kill it, and give back what it takes here."""
        self._process.kill()
        with _exits:
            self._process.join()
        self.connection.close()


def _work(connection: Connection, start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Carry out tasks until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Daemonic here alone, where it ends with the program: what reads documents may start processes.
    multiprocessing.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
    start(*arguments)
    connection.send_bytes(b"ready")
    with suppress(EOFError):
        while True:
            _answer(connection, *connection.recv())


def _answer(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        message = ForkingPickler.dumps((True, function(*arguments)))
    except MemoryError:
        message = ForkingPickler.dumps((False, MemoryError()))
    except BaseException as error:  # noqa: BLE001 - raised where its result is waited for
        message = _told(error)
    connection.send_bytes(message)


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
