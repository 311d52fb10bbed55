"""Service for deployments: a Prefect runner with an orderly shutdown."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.deployments.runner import RunnerDeployment
from prefect.runner import Runner
from prefect.states import Crashed

from parquetry.deployments.schedule_watch import ScheduleWatch
from parquetry.deployments.server_log import ServerLog
from parquetry.deployments.watch import Watch, watching

RUNS_AT_A_TIME = 4
"""maximum number of flow runs of all deployments at a time; each is a separate process"""
_LOOK_SECONDS = 5
"""seconds between checks of the server"""
_STOP_SIGNALS = signal.SIGINT, signal.SIGTERM
_MOST_ABANDONED = 200
"""the API's maximum per request, and more than there can be"""


def serve(
    deployments: Sequence[RunnerDeployment],
    on_ready: Callable[[Collection[UUID]], None],
    on_trouble: Callable[[str], None],
    log: Path | None,
) -> None:
    """Serve deployments until SIGINT or SIGTERM; then cancel active runs, pause the schedules and return.

    `prefect.serve` differs at the end: the runs it kills stay in the state running forever.

    Args:
        deployments: deployments to register with the server and run.
        on_ready: called with their ids once they are registered.
        on_trouble: receives a line about a failing service of the server or a schedule without runs, and another
            when it is resolved; called from a thread.
        log: log file of the server; None for a remote server.
    """
    runner = _Runner(name="parquetry", pause_on_shutdown=True, limit=RUNS_AT_A_TIME)

    @contextmanager
    def watched(ids: Mapping[str, UUID]) -> Iterator[None]:
        scheduled = {each.full_name: ids[each.full_name] for each in deployments if each.schedules}
        looks = [ScheduleWatch(scheduled).look, *([ServerLog(log).look] if log else [])]
        with watching(Watch(looks, on_trouble), _LOOK_SECONDS):
            on_ready(ids.values())
            yield

    before = signal.getsignal(signal.SIGTERM)
    try:
        asyncio.run(runner.serve(deployments, watched))
    except asyncio.CancelledError:
        # Stopped before the deployments were registered.
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGTERM, before)


def crash_abandoned_runs() -> int:
    """Mark the runs left behind by a killed service as crashed, so that nothing waits for them.

    Only for a server used by this service alone.

    Returns:
        Number of runs marked.
    """
    types = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
    unfinished = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=types)))
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(
            flow_run_filter=unfinished, sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=_MOST_ABANDONED
        )
        for run in runs:
            client.set_flow_run_state(run.id, Crashed(message="The program that served it ended."), force=True)
    return len(runs)


class _Runner(Runner):
    """Runner that shuts down the same way for both signals.

    Only its event loop handles them: a handler that raised could do so between any two instructions, where the
    exception ends half of what has to be done, or is discarded.
    """

    async def serve(
        self,
        deployments: Sequence[RunnerDeployment],
        watched: Callable[[Mapping[str, UUID]], AbstractContextManager[None]],
    ) -> None:
        loop = asyncio.get_running_loop()
        registering = asyncio.ensure_future(self._registered(deployments))
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, registering.cancel)
        ids = await registering
        self._end: asyncio.Task[None] | None = None
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._end_soon)
        with watched(ids):
            await self.start()
        if self._end:
            await self._end

    async def _registered(self, deployments: Sequence[RunnerDeployment]) -> dict[str, UUID]:
        return {each.full_name: await self.aadd_deployment(each) for each in deployments}

    def handle_sigterm(self, *_: Any) -> None:
        """Leave SIGTERM to the event loop, which hears of it, too."""

    def _end_soon(self) -> None:
        if self._end is None:
            # From here on Ctrl-C ends at once.
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
            self._end = asyncio.ensure_future(self._stop())

    async def _stop(self) -> None:
        while not self.started:
            await asyncio.sleep(0.05)
        await self.astop()
