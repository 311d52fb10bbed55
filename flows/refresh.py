"""The flows `refresh` and `reindex`: one composition, run by Prefect."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from prefect import flow, runtime
from prefect.client.schemas.objects import State

from parquetry.errors import IndexNotWritten, OutageError, ParquetryError, RefusedError
from parquetry.flows.orchestration.flow_run import (
    FlowCaller,
    begin,
    calling,
    cancelled,
    failed,
    nothing_scheduled,
    refused,
    settings_of_run,
    tag,
    without_index,
)
from parquetry.flows.orchestration.namespace_lock import one_run_at_a_time
from parquetry.flows.orchestration.parameters import Parameters, RefreshParameters, ReindexParameters
from parquetry.flows.orchestration.report import create_artifacts
from parquetry.flows.orchestration.run_log import RunLog, tasks_log_to_run
from parquetry.flows.pipelines.documents import Observer, Request, reindex_request, run_refresh, scopes_of_request
from parquetry.masked_output import masked_errors
from parquetry.planning.report import RunReport
from parquetry.printing import visible
from parquetry.storage.files.layout import layout_of
from parquetry.tasks.documents.run import Cancelled
from parquetry.tasks.engine.prefect import PrefectEngine

_Caller = FlowCaller[Request, Observer, RunReport]
_caller: ContextVar[_Caller | None] = ContextVar("caller", default=None)
_EVERYTHING = RefreshParameters()
_NO_DOCUMENT = ReindexParameters()


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
    caller = _Caller(request, observer, alone)
    root = request.settings.corpus.root
    try:
        with calling(_caller, caller):
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
    except (OutageError, RefusedError, IndexNotWritten):
        if caller.report is None:
            raise
    return caller.told()


def _run_name() -> str:
    """Return `refresh-{namespace, targets or all}-{scheduled start}`."""
    given = runtime.flow_run.parameters.get("parameters") or {}
    model = ReindexParameters if runtime.flow_run.flow_name == "reindex" else RefreshParameters
    parameters = given if isinstance(given, Parameters) else model.model_validate(given)
    start = runtime.flow_run.scheduled_start_time
    return f"{runtime.flow_run.flow_name}-{visible(parameters.subject())}-{start:%Y%m%d-%H%M%S}"


@flow(name="refresh", flow_run_name=_run_name, validate_parameters=True, persist_result=False)
def refresh(
    parameters: RefreshParameters = _EVERYTHING, config: str | None = None, corpus: str | None = None
) -> dict[str, Any] | State[Any]:
    """Bring a corpus up to date with its sources.

    Args:
        parameters: what to refresh.
        config: settings file where the flow runs; default parquetry.toml in its working folder.
        corpus: folder of the corpus; overrides the file.
    """

    def request() -> Request:
        settings = settings_of_run(config, corpus)
        return Request(
            settings,
            tuple(parameters.targets),
            parameters.namespace,
            parameters.allow_removals,
            rehash=parameters.rehash,
        )

    return _run(request)


@flow(name="reindex", flow_run_name=_run_name, validate_parameters=True, persist_result=False)
def reindex(
    parameters: ReindexParameters = _NO_DOCUMENT, config: str | None = None, corpus: str | None = None
) -> dict[str, Any] | State[Any]:
    """Rebuild documents of a corpus, whatever their hashes say.

    Args:
        parameters: which documents.
        config: settings file where the flow runs; default parquetry.toml in its working folder.
        corpus: folder of the corpus; overrides the file.
    """

    def request() -> Request:
        parameters.check()
        settings, documents = settings_of_run(config, corpus), tuple(parameters.documents)
        return reindex_request(settings, documents, parameters.namespace, embeddings_only=parameters.embeddings_only)

    return _run(request)


def _run(parse: Callable[[], Request]) -> dict[str, Any] | State[Any]:
    """Run a request inside a flow run.

    Returns:
        The report as JSON, or the final state of a run that was cancelled, refused, or had nothing to do.
    """
    caller = _caller.get()
    begin()
    try:
        request = caller.request if caller else parse()
        if not (caller or request.scopes or request.targets) and (
            idle := nothing_scheduled(request.settings, "documents")
        ):
            return idle
        scopes = scopes_of_request(request)
        tag(scopes)
        namespaces = () if caller and caller.alone else {scope.namespace for scope in scopes}
        with (
            masked_errors(),
            tasks_log_to_run(),
            one_run_at_a_time(layout_of(request.settings.corpus.root).root, namespaces),
        ):
            report = run_refresh(request, PrefectEngine(), RunLog(caller.observer if caller else None))
    except Cancelled as stopped:
        return cancelled(caller, stopped)
    except RefusedError as error:
        return refused(error)
    except ParquetryError as error:
        return failed(error)
    create_artifacts(report, request.kind, namespaces={scope.namespace for scope in scopes})
    if caller:
        caller.report = report
    match report.error:
        case OutageError() as problem:
            return failed(problem)
        case RefusedError() as problem:
            return refused(problem)
        case IndexNotWritten() as problem:
            return without_index(str(problem))
    return report.as_json()
