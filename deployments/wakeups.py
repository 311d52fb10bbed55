"""`python -m parquetry.deployments.wakeups SOURCE`: refresh a source when an event says that it changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from parquetry.deployments.command import run_command
from parquetry.deployments.definitions import ON_DEMAND
from parquetry.errors import SettingsError
from parquetry.flows.local import api_is_configured
from parquetry.printing import tell, visible

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.events.schemas.automations import AutomationCore

CHANGED = "parquetry.source.changed"
"""name of the event that wakes a source"""
_LEAST, _MOST, _USUAL = 10, 86_400, 30
"""seconds for which events are collected; below the least, Prefect's services are no longer exact"""


def wake(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Name of a source of documents in the settings.")],
    wait: Annotated[
        int,
        typer.Option(min=_LEAST, max=_MOST, help="Seconds between an event and its refresh, which is for all of them."),
    ] = _USUAL,
    deployment: Annotated[
        str, typer.Option(metavar="FLOW/NAME", help="Deployment of the flow `refresh` that is run.")
    ] = f"refresh/{ON_DEMAND}",
) -> None:
    """Have the Prefect server refresh a source when it hears the event `parquetry.source.changed`.

    Creates the automation `parquetry-wakeup-SOURCE`, or replaces it. The event belongs to the resource
    `parquetry.source.SOURCE`. It is no more than a reason to look: the run lists the source as always.
    """
    if not api_is_configured():
        raise SettingsError("PREFECT_API_URL is not set; it names the server, as http://127.0.0.1:4200/api")
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    from parquetry.deployments.automations import put_automation

    try:
        with get_client(sync_client=True) as client:
            found = client.read_deployment_by_name(deployment).id
    except (ObjectNotFound, ValueError) as error:
        raise SettingsError(
            f"the Prefect server has no deployment {deployment!r}; `python -m parquetry.deployments` makes "
            f"refresh/{ON_DEMAND}"
        ) from error
    wanted = wakeup(source, found, timedelta(seconds=wait))
    put_automation(wanted)
    tell(f"Automation {visible(wanted.name)} runs {visible(deployment)} for {visible(source)} {wait} s after an event.")


def wakeup(source: str, deployment: UUID, wait: timedelta) -> AutomationCore:
    """Return the automation.

    The first event starts a window, at whose end the run is due; further ones within the window start no other run. So
    every change is followed by a listing, and there is at most one run per window.

    Args:
        source: name of the source.
        deployment: id of a deployment whose runs wait for each other; one that skips runs would miss changes.
        wait: length of the window.
    """
    from prefect.events.actions import RunDeployment
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    return AutomationCore(
        name=f"parquetry-wakeup-{source}",
        description="A source may have changed: it is refreshed.",
        trigger=EventTrigger(
            # A proactive trigger would wait for quiet, and fire after each window without an event, too.
            posture=Posture.Reactive,
            expect={CHANGED},
            match=ResourceSpecification({"prefect.resource.id": f"parquetry.source.{source}"}),
            threshold=1,
            within=wait,
        ),
        actions=[
            # A run with its own parameters keeps the settings file: only the parameters given are replaced.
            RunDeployment(
                deployment_id=deployment, parameters={"parameters": {"targets": [source]}}, schedule_after=wait
            )
        ],
    )


def main() -> None:
    """Create the automation."""
    run_command(wake, "python -m parquetry.deployments.wakeups")


if __name__ == "__main__":
    main()
