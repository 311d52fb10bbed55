"""A pool of processes that may die at any moment, each at the cost of the one task that it works on."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from time import monotonic, sleep
from typing import Any, TypeVar

from parquetry.tasks.engine.pooled_process import PooledProcess, Task

Result = TypeVar("Result")
_DEATHS_IN_A_ROW = 10
"""processes that die before they can work, one after the other, before the pool breaks"""
_RETRY_SECONDS = 0.05
"""seconds between two attempts to start a process"""
_ATTEMPTS = 3
"""processes that may die before they have the whole of a task, which may be what kills them"""
_AHEAD_BYTES = 4096
"""maximum bytes of a task that a process has in advance: the buffer of a connection takes them, so that nobody waits"""
_MANY = 8
"""waiting tasks for each process above which processes have one in advance, so that none is left without at the end"""


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
        self._start: Callable[[], PooledProcess] = partial(PooledProcess, context, start, arguments)
        self._processes: list[PooledProcess] = []
        self._deaths_in_a_row = 0
        self._thread = threading.Thread(target=self._manage, name="process-pool", daemon=True)
        self._state = threading.Lock()
        """held for what follows, which other threads use"""
        self._waiting: deque[Task] = deque()
        self._end: BaseException | None = None
        """why no task is taken any more"""
        self._has_free = True
        """True if a process may be without a task: one that arrives is told to the thread"""
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
        task = Task(function, arguments, seconds)
        with self._state:
            if self._end is not None:
                raise BrokenProcessPool("the pool is closed") from self._end
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
            self._end = self._end or CancelledError()
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
        while self._lacks_processes():
            try:
                self._processes.append(self._start())
            except (EOFError, ConnectionError) as error:
                # The server from which it would be forked is just being killed, and is started again once it is dead.
                self._count_early_death(error)
                sleep(_RETRY_SECONDS)
            except OSError as error:
                raise BrokenProcessPool("processes cannot be started") from error

    def _lacks_processes(self) -> bool:
        starting = sum(not process.is_ready for process in self._processes)
        return len(self._waiting) > starting and len(self._processes) < self._maximum

    def _fill(self, process: PooledProcess) -> None:
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
                death = self._end or process.death()
                task.attempts += 1
                if task.attempts < _ATTEMPTS and not isinstance(death, MemoryError):
                    self._put_back(task)
                else:
                    task.future.set_exception(death)
                self._lose(process)
                return

    def _next(self, is_ahead: bool) -> Task | None:
        """Take the task that waits longest, unless it is to be sent in advance and too large; None if none waits."""
        with self._state:
            while self._waiting and not (is_ahead and self._waiting[0].is_large):
                task = self._waiting.popleft()
                if task.begin():
                    return task
            if not is_ahead:
                self._has_free = True
        return None

    def _put_back(self, *tasks: Task) -> None:
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

    def _hear(self, process: PooledProcess) -> None:
        try:
            message = process.connection.recv_bytes()
        except (EOFError, OSError) as error:
            if process.tasks:
                # One that stops in the middle of an answer is not waited for longer than for the answer.
                is_late = isinstance(error, BlockingIOError)
                why = TimeoutError() if is_late else self._end or process.death()
                process.tasks.popleft().future.set_exception(why)
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

    def _lose(self, process: PooledProcess) -> None:
        """End a process, and give what it had in advance to others."""
        process.end()
        self._processes.remove(process)
        self._put_back(*process.tasks)
        process.tasks.clear()
        if not process.is_ready:
            self._count_early_death()
        process.is_ready = False

    def _count_early_death(self, error: Exception | None = None) -> None:
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _DEATHS_IN_A_ROW:
            raise BrokenProcessPool("processes cannot be started") from error

    def _abandon(self, error: BaseException) -> None:
        """End all processes, and fail all tasks."""
        with self._state:
            self._end = error = self._end or error
            tasks = [*self._waiting]
            self._waiting.clear()
        for process in self._processes:
            process.end()
            tasks.extend(process.tasks)
        for task in tasks:
            if task.begin():
                task.future.set_exception(error)
