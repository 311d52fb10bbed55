"""The flow `sessions`: learning from finished chat sessions, run by Prefect."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
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
from parquetry.flows.orchestration.parameters import SessionsParameters
from parquetry.flows.orchestration.run_log import tasks_log_to_run
from parquetry.flows.orchestration.session_log import SessionsLog
from parquetry.flows.orchestration.session_report import create_session_artifacts
from parquetry.flows.orchestration.session_review import wait_for_review
from parquetry.flows.pipelines.sessions import SessionsObserver, SessionsRequest, run_sessions, session_scopes
from parquetry.masked_output import masked_errors
from parquetry.printing import visible
from parquetry.sessions.report import SessionsReport
from parquetry.storage.files.layout import layout_of
from parquetry.tasks.documents.run import Cancelled
from parquetry.tasks.engine.prefect import PrefectEngine
from parquetry.tasks.sessions.publish import Review


@dataclass
class _Caller(FlowCaller[SessionsRequest, SessionsObserver, SessionsReport]):
    review: Review | None = None
    """asks for approval of merges; None to publish without review"""


_caller: ContextVar[_Caller | None] = ContextVar("sessions_caller", default=None)
_EVERYTHING = SessionsParameters()


def run_sessions_request(
    request: SessionsRequest, observer: SessionsObserver, review: Review | None, *, alone: bool = False
) -> SessionsReport:
    """Run a request as a flow run in this process.

    Args:
        request: request to run.
        observer: receives progress.
        review: asks for approval of merges; None to publish without review.
        alone: True if the API serves this run only; its namespaces are then not locked.

    Returns:
        The report. A source with a failed service fails the flow run, and is in the report.

    Raises:
        ParquetryError: nothing was published.
    """
    caller = _Caller(request, observer, alone, review=review)
    parameters = SessionsParameters(
        namespace=request.namespace,
        targets=list(request.targets),
        review=review is not None,
        retry_quarantined=request.retry_quarantined,
    )
    try:
        with calling(_caller, caller):
            sessions(parameters, corpus=request.settings.corpus.root)
    except (OutageError, IndexNotWritten):
        if caller.report is None:
            raise
    return caller.told()


def _run_name() -> str:
    """Return `sessions-{namespace, targets or all}-{scheduled start}`."""
    given = runtime.flow_run.parameters.get("parameters") or {}
    parameters = given if isinstance(given, SessionsParameters) else SessionsParameters.model_validate(given)
    return f"sessions-{visible(parameters.subject())}-{runtime.flow_run.scheduled_start_time:%Y%m%d-%H%M%S}"


@flow(name="sessions", flow_run_name=_run_name, validate_parameters=True, persist_result=False)
def sessions(
    parameters: SessionsParameters = _EVERYTHING, config: str | None = None, corpus: str | None = None
) -> dict[str, Any] | State[Any]:
    """Learn from what is new in finished chat sessions.

    Args:
        parameters: what to learn from.
        config: settings file where the flow runs; default parquetry.toml in its working folder.
        corpus: folder of the corpus; overrides the file.
    """
    caller = _caller.get()
    begin()
    try:
        if caller:
            request, review = caller.request, caller.review
        else:
            settings, targets = settings_of_run(config, corpus), tuple(parameters.targets)
            request = SessionsRequest(
                settings, targets, parameters.namespace, retry_quarantined=parameters.retry_quarantined
            )
            review = wait_for_review if parameters.review else None
        if not (caller or request.targets) and (idle := nothing_scheduled(request.settings, "sessions")):
            return idle
        scopes = session_scopes(request)
        tag(scopes)
        namespaces = {scope.namespace for scope in scopes}
        held = set() if caller and caller.alone else namespaces
        root = layout_of(request.settings.corpus.root).root
        with masked_errors(), tasks_log_to_run(), one_run_at_a_time(root, held, "sessions"):
            log = SessionsLog(caller.observer if caller else None)
            report = run_sessions(request, PrefectEngine(), log, review)
    except Cancelled as stopped:
        return cancelled(caller, stopped)
    except RefusedError as error:
        return refused(error)
    except ParquetryError as error:
        return failed(error)
    create_session_artifacts(report, namespaces)
    if caller:
        caller.report = report
    if report.outages:
        return failed(OutageError("; ".join(report.outages)))
    if report.index_error is not None:
        return without_index(report.index_error)
    return report.as_json()
