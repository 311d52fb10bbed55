"""Detection of schedules that produce no runs, based on the Prefect API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import DeploymentSchedule, StateType
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound
from prefect.settings import get_current_settings

from parquetry.deployments.watch import Trouble
from parquetry.errors import first_line
from parquetry.settings.schedule import next_run

LATE = timedelta(minutes=5)
"""delay after which a run that has not started counts as late"""
_HORIZON = timedelta(days=90)
"""lookahead for due runs; Prefect plans up to a hundred days ahead"""
_SILENT_SECONDS = 60
"""seconds without an answer that the API is allowed, as when its database is busy"""
_MOST = 200
"""maximum number of runs per API request"""


@dataclass(frozen=True, slots=True)
class Planned:
    """State of one deployment's upcoming runs in the API."""

    name: str
    """`flow/deployment`"""
    is_due: bool
    """True if it has an active schedule that fires within Prefect's planning horizon"""
    starts: Sequence[datetime]
    """expected start times, past or future, of runs that have not started"""


def troubles_of(planned: Planned, now: datetime, patience: float) -> Iterable[Trouble]:
    """Yield the troubles of a deployment's schedule.

    Args:
        planned: state of its upcoming runs.
        now: current time.
        patience: seconds allowed for Prefect's scheduler to plan runs.
    """
    name = planned.name
    if planned.is_due and not any(start > now for start in planned.starts):
        yield Trouble(
            f"unplanned {name}",
            f"{name} has an active schedule and no run is planned for it; "
            "the Prefect server's scheduler does not work or is switched off, and its log says why",
            f"{name} has runs planned again, or its schedule was paused",
            patience,
        )
    if late := [start for start in planned.starts if start < now - LATE]:
        yield Trouble(
            f"late {name}",
            f"{name} was to start at {min(late):%Y-%m-%d %H:%M} UTC and has not; "
            "look in the Prefect UI for what its run waits for",
            f"{name} has no late run any more",
        )


class ScheduleWatch:
    """Monitor of scheduled deployments through the API.

    Args:
        deployments: deployment name -> id.
        now: returns the current time.
    """

    def __init__(
        self, deployments: Mapping[str, UUID], now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._deployments, self._now = deployments, now
        settings = get_current_settings()
        self._patience = 2 * settings.server.services.scheduler.loop_seconds + 30
        self._api = str(settings.api.url)
        self._last: list[Trouble] = []
        """troubles at the last answer of the API"""

    def look(self) -> Iterable[Trouble]:
        """Return the troubles of the schedules, and of the API itself."""
        now = self._now()
        try:
            found = [self._troubles(name, deployment, now) for name, deployment in self._deployments.items()]
        except (httpx.HTTPError, OSError) as error:
            silent = Trouble(
                "api",
                f"the Prefect API {self._api} does not answer, so that no run starts: {first_line(error)}",
                f"the Prefect API {self._api} answers again",
                _SILENT_SECONDS,
            )
            # Earlier troubles are kept, because the API cannot confirm that they are over.
            return [*self._last, silent]
        self._last = [trouble for troubles in found for trouble in troubles]
        return self._last

    def _troubles(self, name: str, deployment: UUID, now: datetime) -> list[Trouble]:
        try:
            return list(troubles_of(self._planned(name, deployment, now), now, self._patience))
        except ObjectNotFound:
            line = f"{name} was deleted from the Prefect server, so that its schedule is off; serve again to restore it"
            return [Trouble(f"gone {name}", line, f"{name} is there again")]

    def _planned(self, name: str, deployment: UUID, now: datetime) -> Planned:
        with get_client(sync_client=True) as client:
            known = client.read_deployment(deployment)
            runs = client.read_flow_runs(
                deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
                flow_run_filter=FlowRunFilter(
                    state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED]))
                ),
                sort=FlowRunSort.EXPECTED_START_TIME_ASC,
                limit=_MOST,
            )
        is_due = not known.paused and any(_is_due(each, now) for each in known.schedules)
        return Planned(name, is_due, [run.expected_start_time for run in runs if run.expected_start_time])


def _is_due(schedule: DeploymentSchedule, now: datetime) -> bool:
    if not schedule.active or not isinstance(schedule.schedule, CronSchedule):
        return schedule.active
    try:
        return next_run(schedule.schedule.cron, now) < now + _HORIZON
    except ValueError:
        return False
