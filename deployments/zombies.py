"""Automation that marks flow runs whose process is gone as crashed: nothing else on a self-hosted server does."""

from __future__ import annotations

from datetime import timedelta

from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.settings import get_current_settings

from parquetry.deployments.automations import put_automation, runs_with_tag
from parquetry.flows.orchestration.flow_run import OWN_STATES
from parquetry.printing import tell

NAME = "parquetry-zombies"
"""name of the automation"""
MISSED = 3
"""number of heartbeats that a living run may miss"""
_BEAT = "prefect.flow-run.heartbeat"
_STATES = ("Completed", "Failed", "Crashed", "TimedOut", "Cancelled", "Cancelling", "Paused", "Suspended", *OWN_STATES)
"""states of a run whose heart may rest. Not those of a run at work: the event of such a state may arrive after the
first heartbeat, and a run that is killed before the second one would not be missed."""


def watch_for_zombies() -> None:
    """Have the Prefect server mark runs of Parquetry that miss their heartbeats as crashed."""
    seconds = get_current_settings().flows.heartbeat_frequency
    if seconds is None:
        tell("PREFECT_FLOWS_HEARTBEAT_FREQUENCY is null: runs whose process is gone stay running.", err=True)
    else:
        put_automation(zombies(timedelta(seconds=MISSED * seconds)))


def zombies(patience: timedelta) -> AutomationCore:
    """Return the automation.

    Args:
        patience: time without a heartbeat after which a run counts as dead.
    """
    message = f"No heartbeat for {patience.total_seconds():.0f} s: the process of this run is gone."
    return AutomationCore(
        name=NAME,
        description="A run of Parquetry has no process any more: it is marked as crashed.",
        trigger=EventTrigger(
            posture=Posture.Proactive,
            after={_BEAT},
            expect={_BEAT, *(f"prefect.flow-run.{state}" for state in _STATES)},
            match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
            match_related=runs_with_tag(),
            for_each={"prefect.resource.id"},
            threshold=1,
            within=patience,
        ),
        actions=[ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=message)],
    )
