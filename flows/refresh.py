"""The flows `refresh` and `reindex`: one composition, run by Prefect."""

from __future__ import annotations

from collections.abc import Callable
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
from parquetry.flows.orchestration.parameters import RefreshParameters, ReindexParameters
from parquetry.flows.orchestration.report import create_artifacts
from parquetry.flows.pipelines.documents import Request, run_refresh, scopes_of_request
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.reindex import reindex_request
from parquetry.planning.report import RunReport
from parquetry.settings.sections import Settings, override
from parquetry.tasks.documents.remote import check_workers
from parquetry.tasks.engine.base import Engine

_caller: ContextVar[FlowCaller[Request, RunReport] | None] = ContextVar("caller", default=None)
_EVERYTHING = RefreshParameters()
_NO_DOCUMENT = ReindexParameters()


def _within(settings: Settings, budget_usd: float | None) -> Settings:
    """Return the settings with the budget of a run, if it has one of its own."""
    return settings if budget_usd is None else override(settings, {"refresh": {"budget_usd": budget_usd}})


def _execute(request: Request, engine: Engine, observer: Observer) -> RunReport:
    check_workers(request.settings)
    return run_refresh(request, engine, observer)


_KIND = FlowKind[Request, RunReport](
    "documents",
    "",
    scopes_of_request,
    _execute,
    lambda report, request, namespaces: create_artifacts(report, request.kind, namespaces),
)


def run_request(request: Request, observer: Observer, *, alone: bool = False) -> RunReport:
    """Run a request as a flow run in this process.

    Args:
        request: request to run.
        observer: receives progress.
        alone: True if the API serves this run only; its namespaces are then not locked.

    Returns:
        The report. A source stopped by a guard or a failed service fails the flow run, and is in the report.

    Raises:
        ParquetryError: nothing was published.
    """
    root = request.settings.corpus.root

    def start() -> None:
        if request.kind == "reindex":
            reindex(ReindexParameters(namespace=request.namespace), corpus=root)
        else:
            parameters = RefreshParameters(
                namespace=request.namespace,
                targets=list(request.targets),
                allow_removals=request.allow_removals,
                rehash=request.rehash,
            )
            refresh(parameters, corpus=root)

    return run_in_process(_caller, FlowCaller(request, observer, alone), start)


def _run_flow(parse: Callable[[], Request]) -> dict[str, Any] | State[Any]:
    """Run the flow of a request; workers of a task runner receive the flow function, which must not name a variable."""
    return run_flow(_KIND, _caller.get(), parse)


@flow(name="refresh", flow_run_name=run_name, validate_parameters=True, persist_result=False)
def refresh(
    parameters: RefreshParameters = _EVERYTHING, config: str | None = None, corpus: str | None = None
) -> dict[str, Any] | State[Any]:
    """Update a corpus from its sources.

    Args:
        parameters: what to refresh.
        config: settings file where the flow runs; default parquetry.toml in its working folder.
        corpus: folder of the corpus; overrides the file.
    """

    def request() -> Request:
        settings = _within(settings_of_run(config, corpus), parameters.budget_usd)
        return Request(
            settings,
            tuple(parameters.targets),
            parameters.namespace,
            parameters.allow_removals,
            rehash=parameters.rehash,
        )

    return _run_flow(request)


@flow(name="reindex", flow_run_name=run_name, validate_parameters=True, persist_result=False)
def reindex(
    parameters: ReindexParameters = _NO_DOCUMENT, config: str | None = None, corpus: str | None = None
) -> dict[str, Any] | State[Any]:
    """Rebuild documents of a corpus regardless of their hashes.

    Args:
        parameters: which documents.
        config: settings file where the flow runs; default parquetry.toml in its working folder.
        corpus: folder of the corpus; overrides the file.
    """

    def request() -> Request:
        parameters.check()
        settings = _within(settings_of_run(config, corpus), parameters.budget_usd)
        documents = tuple(parameters.documents)
        return reindex_request(settings, documents, parameters.namespace, embeddings_only=parameters.embeddings_only)

    return _run_flow(request)
