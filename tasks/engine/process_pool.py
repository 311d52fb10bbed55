"""A pool of processes that tells of one that died only after everything that it had sent before was read.

A process tells that it begins a task just before it does. Pebble reads this in one thread, and looks in another whether
processes live. On a busy machine, it may see that the process of a bad document is dead before it knows that it had
begun a task: then the pool breaks, with all of its tasks, or the task is waited for until its time is up.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from pebble import ProcessPool
from pebble.pool.process import Acknowledgement, PoolManager, TaskProblem, TaskResult

_DEATHS_IN_A_ROW = 10
"""processes that die without a task before a pool breaks, none of which began one: their start fails each time"""


class PatientPool(ProcessPool):
    """A pool whose processes may die at any moment, each at the cost of the task that it had begun.

    Args:
        context: context of `multiprocessing` that starts the processes.
        **options: as of `ProcessPool`.
    """

    def __init__(self, *, context: Any, **options: Any) -> None:
        super().__init__(context=context, **options)
        self._pool_manager = _PatientManager(self._context, context)


class _PatientManager(PoolManager):
    def __init__(self, context: Any, mp_context: Any) -> None:
        super().__init__(context, mp_context)
        self._dead: deque[tuple[int, int]] = deque()
        """process id and exit code of processes of which messages may be left"""
        self._deaths_in_a_row = 0

    def update_workers(self) -> None:
        self._dead.extend(self.worker_manager.inspect_workers())
        self.worker_manager.create_workers()  # type: ignore[no-untyped-call]

    def process_next_message(self, timeout: float) -> None:
        known = len(self._dead)
        # Others may send without a rest as long as that: what counts is a moment in which nothing is left to read.
        message = self.worker_manager.receive(0 if known else timeout)
        if isinstance(message, Acknowledgement):
            self._deaths_in_a_row = 0
            self.task_manager.task_start(message.task, message.worker)
        elif isinstance(message, TaskResult):
            self.task_manager.task_done(message.task, message.result)
        elif isinstance(message, TaskProblem):
            self.task_manager.task_problem(message.task, message.error)
        else:
            for _ in range(known):
                self.handle_worker_expiration(self._dead.popleft())

    def find_expired_task(self, worker_id: int) -> Any:
        try:
            return super().find_expired_task(worker_id)
        except BrokenProcessPool:
            self._deaths_in_a_row += 1
            if self._deaths_in_a_row >= _DEATHS_IN_A_ROW:
                raise
            raise LookupError("it had no task") from None
