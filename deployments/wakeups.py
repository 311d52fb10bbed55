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
"""event that wakes a source, unless another is named"""
_LEAST_QUIET = 10
"""seconds; the shortest time in which Prefect can find that an event did not come"""


def wake(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Name of a source of documents in the settings.")],
    event: Annotated[
        str, typer.Option(metavar="NAME", help="Event that says so; `*` at the end stands for anything.")
    ] = CHANGED,
    resource: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Resource of the event, likewise; default parquetry.source.SOURCE."),
    ] = None,
    quiet: Annotated[
        int,
        typer.Option(min=_LEAST_QUIET, max=86_400, help="Seconds without another such event before the refresh."),
    ] = _LEAST_QUIET,
) -> None:
    """Have the Prefect server refresh a source when an event says that something changed there.

    Creates the automation `parquetry-wakeup-SOURCE`, or replaces it. An event is no more than a reason to look: the
    run lists the source as always.
    """
    if not api_is_configured():
        raise SettingsError("PREFECT_API_URL is not set; it names the server, as http://127.0.0.1:4200/api")
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    from parquetry.deployments.automations import put_automation

    name = f"refresh/{ON_DEMAND}"
    try:
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment_by_name(name).id
    except ObjectNotFound as error:
        raise SettingsError(
            f"the Prefect server has no deployment {name}; serve with `python -m parquetry.deployments` first"
        ) from error
    resource = resource or f"parquetry.source.{source}"
    wanted = wakeup(source, deployment, event, resource, timedelta(seconds=quiet))
    put_automation(wanted)
    tell(
        f"Automation {visible(wanted.name)} refreshes {visible(source)} when {visible(event)} of {visible(resource)} "
        f"has come, and no other for {quiet} s."
    )


def wakeup(source: str, deployment: UUID, event: str, resource: str, quiet: timedelta) -> AutomationCore:
    """Return the automation.

    It fires when the event did not come again for a while. Many objects that arrive together make one run, and after
    the last event there is always one.

    Args:
        source: name of the source.
        deployment: id of `refresh/on-demand`, whose runs wait for each other; none is left out.
        event: name of the event.
        resource: resource of the event.
        quiet: time without another event.
    """
    from prefect.events.actions import RunDeployment
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    return AutomationCore(
        name=f"parquetry-wakeup-{source}",
        description="A source told that something changed: it is refreshed.",
        trigger=EventTrigger(
            posture=Posture.Proactive,
            after={event},
            expect={event},
            match=ResourceSpecification({"prefect.resource.id": resource}),
            threshold=1,
            within=quiet,
        ),
        # A run with its own parameters keeps the settings file: only the parameters given are replaced.
        actions=[RunDeployment(deployment_id=deployment, parameters={"parameters": {"targets": [source]}})],
    )


def main() -> None:
    """Create the automation."""
    run_command(wake, "python -m parquetry.deployments.wakeups")


if __name__ == "__main__":
    main()
