"""An engine that has batches processed by their orders, as workers of other processes do, in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from parquetry.embed.base import Gate, no_gate
from parquetry.tasks.documents import worker
from parquetry.tasks.engine.base import BatchHandler, HostQueues

Result = TypeVar("Result")
Execute = Callable[[Callable[[], str], int], str]
"""returns the answer to an order, given what executes it, and the number of the batch"""


@contextmanager
def another_process() -> Iterator[None]:
    """Execute an order as a process does that knows nothing of this one's part in the run."""
    known = dict(worker._workers)
    worker._workers.clear()
    try:
        yield
    finally:
        worker.close_idle()
        worker._workers.update(known)


class OrdersEngine:
    """The engine. As many orders are out as batches may be in work at a time; they are executed one after the other.

    Args:
        execute: executes an order, once or more often; its errors are those of a worker that was lost.
        own: numbers of batches that stay with the run, as those of web sources do.
    """

    gate: Gate = staticmethod(no_gate)

    def __init__(self, execute: Execute = lambda execution, _: execution(), own: Collection[int] = frozenset()) -> None:
        self._execute = execute
        self._own = own
        self.executed: list[int] = []
        """numbers of the batches that were sent out, in the order of their executions"""
        self.orders: list[str] = []
        """those that were executed"""
        self.waiting: list[str] = []
        """those that are out, and not executed yet"""

    def step(self, name: str, function: Callable[[], Result]) -> Result:
        return function()

    def batches(self, batches: Sequence[Any], handler: BatchHandler[Any, Any]) -> Iterator[Any]:
        remote = handler.remote
        assert remote is not None
        queues = HostQueues(batches, handler.concurrency)

        def ordered(batch: Any) -> str | None:
            return None if batch.number in self._own else remote.order(batch)

        out = deque((batch, ordered(batch)) for batch in queues.first())
        while out:
            batch, order = out.popleft()
            self.waiting = [each for _, each in out if each is not None]
            report = handler.process(batch) if order is None else self._report(batch, order, handler)
            out.extend((each, ordered(each)) for each in queues.after(batch))
            yield report

    def _report(self, batch: Any, order: str, handler: BatchHandler[Any, Any]) -> Any:
        remote = handler.remote
        assert remote is not None
        self.orders.append(order)

        def execution() -> str:
            self.executed.append(batch.number)
            return remote.carry_out(order, remote.settings, no_gate)

        try:
            answer = self._execute(execution, batch.number)
        except Exception as error:  # noqa: BLE001 - the edge of a batch, as in an engine
            remote.lost(batch)
            return handler.failed(batch, error)
        return remote.receive(answer)
