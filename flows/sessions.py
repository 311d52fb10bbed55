"""The flow `sessions`: learning from finished chat sessions, run by Prefect."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
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
from parquetry.flows.orchestration.parameters import SessionsParameters
from parquetry.flows.orchestration.session_report import create_session_artifacts
from parquetry.flows.orchestration.session_review import wait_for_review
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.sessions import SessionsRequest, run_sessions, session_scopes
from parquetry.sessions.report import SessionsReport
from parquetry.tasks.sessions.publish import Review


@dataclass
class _Caller(FlowCaller[SessionsRequest, SessionsReport]):
    review: Review | None = None
    """asks for approval of merges; None to publish without review"""


_caller: ContextVar[FlowCaller[SessionsRequest, SessionsReport] | None] = ContextVar("sessions_caller", default=None)
_EVERYTHING = SessionsParameters()


def run_sessions_request(
    request: SessionsRequest, observer: Observer, review: Review | None, *, alone: bool = False
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
    parameters = SessionsParameters(
        namespace=request.namespace,
        targets=list(request.targets),
        review=review is not None,
        retry_quarantined=request.retry_quarantined,
    )
    caller = _Caller(request, observer, alone, review=review)
    return run_in_process(_caller, caller, lambda: sessions(parameters, corpus=request.settings.corpus.root))


@flow(name="sessions", flow_run_name=run_name, validate_parameters=True, persist_result=False)
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
    review: Review | None = wait_for_review if parameters.review else None
    if isinstance(caller, _Caller):
        review = caller.review

    def request() -> SessionsRequest:
        return SessionsRequest(
            settings_of_run(config, corpus),
            tuple(parameters.targets),
            parameters.namespace,
            retry_quarantined=parameters.retry_quarantined,
        )

    kind = FlowKind[SessionsRequest, SessionsReport](
        "sessions",
        "sessions",
        session_scopes,
        partial(run_sessions, review=review),
        lambda report, _, namespaces: create_session_artifacts(report, namespaces),
    )
    return run_flow(kind, caller, request)
