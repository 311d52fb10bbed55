"""Automations of Parquetry on a Prefect server, created once and replaced if they differ."""

from __future__ import annotations

from prefect.client.orchestration import get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.events.schemas.events import ResourceSpecification

from parquetry.flows.orchestration.flow_run import TAG


def runs_with_tag() -> ResourceSpecification:
    """Return the specification of resources related to events of Parquetry's runs."""
    return ResourceSpecification({"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{TAG}"})


def put_automation(wanted: AutomationCore) -> bool:
    """Create an automation, or replace the one of its name if that does something else.

    One that an operator disabled stays disabled. An equal one is left alone, because its server counts events for it.

    Returns:
        True if the server's automation was created or changed.
    """
    with get_client(sync_client=True) as client:
        known = next(iter(client.read_automations_by_name(wanted.name)), None)
        if known is None:
            client.create_automation(wanted)
        elif _told(known) == _told(wanted):
            return False
        else:
            client.update_automation(known.id, wanted.model_copy(update={"enabled": known.enabled}))
    return True


def _told(automation: AutomationCore) -> object:
    """Return what an automation does, without the ids that the server gives its parts."""
    trigger = automation.trigger.model_dump(exclude={"id"})
    return trigger, [action.model_dump() for action in automation.actions]
