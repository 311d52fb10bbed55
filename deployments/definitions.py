"""Deployments defined by a settings file, scheduled and on demand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parquetry.errors import SettingsError
from parquetry.settings.schedule import next_run
from parquetry.settings.sections import Settings
from parquetry.settings.source import SourceSettings

if TYPE_CHECKING:
    from prefect.client.schemas.objects import ConcurrencyLimitConfig
    from prefect.deployments.runner import RunnerDeployment
    from prefect.flows import Flow

ON_DEMAND = "on-demand"
FLOWS = {"documents": "refresh", "sessions": "sessions"}
"""content of a source -> name of the scheduled flow"""
GRACE_SECONDS = 120
"""seconds for a run to start after it got its slot; then the slot is released"""


def deployments_of(settings: Settings, config: Path | None) -> list[RunnerDeployment]:
    """Return the deployments of a settings file.

    Args:
        settings: settings from the file.
        config: settings file, which the flows read again when they run; None for the defaults.

    Returns:
        `refresh/{source}` for each source of documents with a schedule, `sessions/{source}` for each of sessions;
        `maintenance/scheduled` if `[retention]` has one; `refresh/on-demand`, `reindex/on-demand`,
        `maintenance/on-demand` and, where there are sources of sessions, `sessions/on-demand`.

    Raises:
        SettingsError: as for `check_deployments`.
    """
    check_deployments(settings)
    from parquetry.flows.maintenance import maintenance
    from parquetry.flows.refresh import refresh, reindex
    from parquetry.flows.sessions import sessions

    file = str(config.resolve()) if config else None
    on_demand: list[Flow[..., Any]] = [refresh, reindex, maintenance]
    if any(source.content == "sessions" for source in settings.source):
        on_demand.append(sessions)
    return [
        *(_scheduled(source, settings, file) for source in settings.source if source.schedule),
        *_maintenance(settings, file),
        *(_deployment(each, ON_DEMAND, config=file, limit=_one_run("ENQUEUE")) for each in on_demand),
    ]


def check_deployments(settings: Settings) -> None:
    """Check the deployments for errors that settings validation cannot find; needs no server or Prefect.

    Raises:
        SettingsError: two sources get the same name, or a schedule's year is past.
    """
    scheduled = [source for source in settings.source if source.schedule]
    names = [f"{FLOWS[source.content]}/{deployment_name(source, settings)}" for source in scheduled]
    counts = Counter([*(f"{flow}/{ON_DEMAND}" for flow in FLOWS.values()), *names])
    for name, count in counts.items():
        if count > 1:
            raise SettingsError(f"{count} deployments would be named {name}; give these sources other names")
    schedules = [(f"source {source.name}", source.schedule) for source in scheduled]
    now = datetime.now(UTC)
    for what, schedule in [*schedules, ("[retention]", settings.retention.schedule)]:
        try:
            if schedule is not None:
                next_run(schedule, now)
        except ValueError as error:
            raise SettingsError(f"{what}: {error}; leave the schedule out, or change its year") from error


def deployment_name(source: SourceSettings, settings: Settings) -> str:
    """Return the name of a source's deployment: `{source}`; `{namespace}-{source}` outside the default namespace."""
    namespace = source.namespace or settings.corpus.namespace
    name = source.name if namespace == settings.corpus.namespace else f"{namespace}-{source.name}"
    # Prefect rejects these in names, because they would have to be escaped in URLs.
    return re.sub(r"[/%&<>\s]+", "-", name).strip("-")


def _scheduled(source: SourceSettings, settings: Settings, file: str | None) -> RunnerDeployment:
    from parquetry.flows.refresh import refresh
    from parquetry.flows.sessions import sessions

    namespace = source.namespace or settings.corpus.namespace
    return _deployment(
        sessions if source.content == "sessions" else refresh,
        deployment_name(source, settings),
        cron=source.schedule,
        config=file,
        parameters={"targets": [source.name], "namespace": namespace},
        tags=[f"namespace:{namespace}", f"source:{source.name}"],
        # A run that starts during another would find the same changes; the next scheduled one is soon enough.
        limit=_one_run("CANCEL_NEW"),
    )


def _maintenance(settings: Settings, file: str | None) -> list[RunnerDeployment]:
    if settings.retention.schedule is None:
        return []
    from parquetry.flows.maintenance import maintenance

    limit = _one_run("CANCEL_NEW")
    return [_deployment(maintenance, "scheduled", cron=settings.retention.schedule, config=file, limit=limit)]


def _deployment(
    flow: Flow[..., Any],
    name: str,
    *,
    config: str | None,
    limit: ConcurrencyLimitConfig,
    parameters: dict[str, Any] | None = None,
    cron: str | None = None,
    tags: Sequence[str] = (),
) -> RunnerDeployment:
    from prefect.deployments.runner import RunnerDeployment
    from prefect.types.entrypoint import EntrypointType

    from parquetry.flows.orchestration.flow_run import TAG

    return RunnerDeployment.from_flow(
        flow,
        name=name,
        cron=cron,
        # A run with its own parameters keeps the settings file: only the parameters given are replaced.
        parameters={"config": config, "parameters": parameters or {}},
        tags=[TAG, *tags],
        concurrency_limit=limit,
        # A file entrypoint would load the module twice, under another name.
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def _one_run(strategy: str) -> ConcurrencyLimitConfig:
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy

    return ConcurrencyLimitConfig(
        limit=1, collision_strategy=ConcurrencyLimitStrategy(strategy), grace_period_seconds=GRACE_SECONDS
    )
