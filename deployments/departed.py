"""Schedules of deployments that a settings file no longer defines, because a source or its schedule is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.responses import DeploymentResponse

from parquetry.flows.orchestration.flow_run import TAG

_MOST = 200
"""maximum number of deployments per API request"""


def clear_departed(config: str | None, served: Collection[UUID]) -> list[str]:
    """Delete the schedules of deployments of this settings file that are not served any more, and their planned runs.

    The deployments themselves stay, with their history. Those of a work pool are left alone: they are not made here.

    Args:
        config: settings file, as in the parameters of its deployments.
        served: ids of its deployments.

    Returns:
        `flow/deployment` of each deployment that had a schedule.
    """
    with get_client(sync_client=True) as client:
        departed = [
            each
            for each in _deployments(client)
            if each.id not in served
            and each.schedules
            and each.work_pool_name is None
            and each.parameters.get("config", "") == config
        ]
        for deployment in departed:
            for schedule in deployment.schedules:
                client.delete_deployment_schedule(deployment.id, schedule.id)
        return [f"{client.read_flow(each.flow_id).name}/{each.name}" for each in departed]


def _deployments(client: SyncPrefectClient) -> Iterator[DeploymentResponse]:
    """Yield the deployments of Parquetry."""
    ours = DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG]))
    offset = 0
    while page := client.read_deployments(deployment_filter=ours, limit=_MOST, offset=offset):
        yield from page
        offset += len(page)
