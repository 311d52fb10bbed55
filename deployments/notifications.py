"""`python -m parquetry.deployments.notifications URL`: call a webhook about runs from a Prefect server."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, cast

import typer

from parquetry.deployments.command import run_command
from parquetry.errors import SettingsError
from parquetry.flows.local import api_is_configured
from parquetry.masking import masked
from parquetry.printing import tell

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.events.schemas.automations import AutomationCore

NAME = "parquetry-alerts"
"""name of the webhook block and of the automation; existing ones are replaced"""
EVENTS = frozenset(f"prefect.flow-run.{state}" for state in ("Failed", "Crashed", "TimedOut", "Refused"))
PAYLOAD = """\
{"text": {{ ("Parquetry: " ~ flow_run.name ~ " of the flow " ~ flow.name ~ " ended as " ~ flow_run.state.name ~ ": "
~ flow_run.state.message) | tojson }}, "flow": {{ flow.name | tojson }}, "flow_run": {{ flow_run.name | tojson }},
"state": {{ flow_run.state.name | tojson }}, "message": {{ flow_run.state.message | tojson }},
"url": {{ flow_run | ui_url | tojson }}}"""
"""JSON, as a Jinja template; chat services show the key `text`"""
EVENTS_NAME = "parquetry-events"
"""name of the webhook block and of the automation about Parquetry's own events"""
OWN_EVENTS = ("parquetry.published", "parquetry.source.failed", "parquetry.run.refused")
EVENT_PAYLOAD = """\
{"text": {{ ("Parquetry: " ~ event.event ~ " of " ~ event.resource.id ~ (": " ~ event.payload.problem if
event.payload.problem else "")) | tojson }}, "event": {{ event.event | tojson }}, "resource": {{ event.resource.id |
tojson }}, "occurred": {{ (event.occurred | string) | tojson }}, "payload": {{ event.payload | tojson }}}"""


def notify(
    url: Annotated[str, typer.Argument(metavar="URL", help="Webhook that gets a JSON object for each such run.")],
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Instead for each event of this name, such as parquetry.published; repeatable."
        ),
    ] = None,
) -> None:
    """Have the Prefect server call a webhook when a run of Parquetry fails, crashes, or is refused by a guard.

    Creates the webhook block and the automation `parquetry-alerts`, or replaces them; with `--event`, those named
    `parquetry-events`.
    """
    if unknown := sorted(set(event or ()) - set(OWN_EVENTS)):
        raise SettingsError(f"{unknown[0]!r} is no event of Parquetry; these are: {', '.join(OWN_EVENTS)}")
    if not url.lower().startswith(("http://", "https://")):
        raise SettingsError(f"{url!r} is not the address of a webhook; it begins with https:// or http://")
    if not api_is_configured():
        raise SettingsError("PREFECT_API_URL is not set; it names the server, as http://127.0.0.1:4200/api")
    from prefect.blocks.webhook import Webhook

    from parquetry.deployments.automations import put_automation

    block = Webhook.model_validate({"url": url, "headers": {"Content-Type": "application/json"}})
    if event:
        put_automation(event_alerts(cast("UUID", block.save(EVENTS_NAME, overwrite=True)), event))
        tell(f"Automation {EVENTS_NAME} calls {masked(url)} for {', '.join(sorted(set(event)))}.")
    else:
        put_automation(alerts(cast("UUID", block.save(NAME, overwrite=True))))
        tell(f"Automation {NAME} calls {masked(url)} when a run of Parquetry fails, crashes, or is refused.")


def alerts(webhook: UUID) -> AutomationCore:
    """Return the automation.

    Args:
        webhook: id of the webhook block.
    """
    from datetime import timedelta

    from prefect.events.actions import CallWebhook
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    from parquetry.deployments.automations import runs_with_tag

    return AutomationCore(
        name=NAME,
        description="A run of Parquetry failed, crashed, or was refused by a guard or a budget.",
        trigger=EventTrigger(
            posture=Posture.Reactive,
            expect=set(EVENTS),
            match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
            # Runs from the command line have this tag from the start; runs of a deployment get it from the deployment.
            match_related=runs_with_tag(),
            for_each={"prefect.resource.id"},
            threshold=1,
            within=timedelta(0),
        ),
        actions=[CallWebhook(block_document_id=webhook, payload=PAYLOAD)],
    )


def event_alerts(webhook: UUID, events: Collection[str]) -> AutomationCore:
    """Return the automation about Parquetry's own events.

    Args:
        webhook: id of the webhook block.
        events: names of the events.
    """
    from datetime import timedelta

    from prefect.events.actions import CallWebhook
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

    return AutomationCore(
        name=EVENTS_NAME,
        description=f"An event of Parquetry: {', '.join(sorted(set(events)))}.",
        trigger=EventTrigger(posture=Posture.Reactive, expect=set(events), threshold=1, within=timedelta(0)),
        actions=[CallWebhook(block_document_id=webhook, payload=EVENT_PAYLOAD)],
    )


def main() -> None:
    """Create the automation."""
    run_command(notify, "python -m parquetry.deployments.notifications")


if __name__ == "__main__":
    main()
