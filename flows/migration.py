"""The flow `migrate`: build a migration to another embedder or other chunk settings, or switch to it, by Prefect."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from parquetry.flows.orchestration.flow_run import (
    FlowCaller,
    FlowKind,
    run_flow,
    run_in_process,
    run_name,
    settings_of_run,
)
from parquetry.flows.orchestration.report import create_artifacts
from parquetry.flows.pipelines.migration import KIND, run_migration
from parquetry.flows.pipelines.migration_plan import MigrationRequest
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport

_caller: ContextVar[FlowCaller[MigrationRequest, RunReport] | None] = ContextVar("caller", default=None)
_KIND = FlowKind[MigrationRequest, RunReport](
    "documents",
    "",
    lambda _: (),
    run_migration,
    lambda report, _, namespaces: create_artifacts(report, KIND, namespaces),
)


def run_migration_request(request: MigrationRequest, observer: Observer, *, alone: bool = False) -> RunReport:
    """Run a request as a flow run in this process; arguments and result as for `parquetry.flows.refresh.run_request`.

    Raises:
        ParquetryError: nothing was published.
    """

    def start() -> None:
        migrate(corpus=request.settings.corpus.root)

    return run_in_process(_caller, FlowCaller(request, observer, alone), start)


@flow(name="migrate", flow_run_name=run_name, validate_parameters=True, persist_result=False)
def migrate(config: str | None = None, corpus: str | None = None) -> dict[str, Any] | State[Any]:
    """Go on building the migration of a corpus that was begun.

    Args:
        config: settings file where the flow runs; default parquetry.toml in its working folder.
        corpus: folder of the corpus; overrides the file.
    """
    return run_flow(_KIND, _caller.get(), lambda: MigrationRequest(settings_of_run(config, corpus)))
