"""The flows `refresh` and `reindex`: one composition, run by Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, runtime
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from flows.composition import Observer, Request, reindex_request, run_refresh
from flows.parameters import CorpusParameters, RefreshParameters, ReindexParameters
from flows.report import failures_table, report_markdown
from knowledge.batches import Batch
from knowledge.errors import RefusedError
from knowledge.report import RunReport
from knowledge.settings import Settings, load_settings, override
from tasks.batch import BatchReport
from tasks.plan import RefreshPlan
from tasks.prefect_engine import PrefectEngine


@dataclass
class _Caller:
    """A program that runs a flow in its own process: what it asks for, who watches, where the report goes."""

    request: Request
    observer: Observer
    report: RunReport | None = None


_caller: ContextVar[_Caller | None] = ContextVar("caller", default=None)


def run_request(request: Request, observer: Observer) -> RunReport:
    """Run a request as a flow run in this process.

    Args:
        request: what to do.
        observer: is told of progress.

    Raises:
        ParquetryError: nothing was published.
    """
    caller = _Caller(request, observer)
    token = _caller.set(caller)
    root = request.settings.corpus.root
    try:
        if request.kind == "reindex":
            reindex(ReindexParameters(corpus=root, namespace=request.namespace))
        else:
            refresh(RefreshParameters(corpus=root, namespace=request.namespace, targets=list(request.targets)))
    finally:
        _caller.reset(token)
    if caller.report is None:
        raise RuntimeError("the flow ended without a report")
    return caller.report


def _run_name() -> str:
    parameters = runtime.flow_run.parameters.get("parameters")
    namespace = getattr(parameters, "namespace", None) or "all"
    return f"{runtime.flow_run.flow_name}-{namespace}-{runtime.flow_run.scheduled_start_time:%Y%m%d-%H%M%S}"


@flow(name="refresh", flow_run_name=_run_name, validate_parameters=True, persist_result=False)
def refresh(parameters: RefreshParameters | None = None) -> dict[str, Any]:
    """Bring a corpus up to date with its sources."""
    parameters = parameters or RefreshParameters()
    if caller := _caller.get():
        return _run(caller.request)
    return _run(
        Request(_settings(parameters), tuple(parameters.targets), parameters.namespace, parameters.allow_removals)
    )


@flow(name="reindex", flow_run_name=_run_name, validate_parameters=True, persist_result=False)
def reindex(parameters: ReindexParameters | None = None) -> dict[str, Any]:
    """Rebuild documents of a corpus, whatever their hashes say."""
    parameters = parameters or ReindexParameters()
    if caller := _caller.get():
        return _run(caller.request)
    documents = tuple(parameters.documents)
    return _run(
        reindex_request(
            _settings(parameters), documents, parameters.namespace, embeddings_only=parameters.embeddings_only
        )
    )


def _settings(parameters: CorpusParameters) -> Settings:
    settings = load_settings(Path(parameters.config) if parameters.config else None)
    return override(settings, {"corpus": {"root": parameters.corpus}}) if parameters.corpus else settings


def _run(request: Request) -> dict[str, Any]:
    report = run_refresh(request, PrefectEngine(), _Logged())
    create_markdown_artifact(report_markdown(report), key="refresh-report", description="What the run did")
    create_table_artifact(
        failures_table(report), key="refresh-failures", description="Documents that are not indexed, and why"
    )
    if caller := _caller.get():
        caller.report = report
    elif report.refused:
        raise RefusedError("; ".join(report.refused))
    return report.as_json()


class _Logged:
    """Tells the run's log what a person wants to know, and whoever else watches."""

    def __init__(self) -> None:
        self._log = get_run_logger()
        caller = _caller.get()
        self._watcher = caller.observer if caller else None
        self._total = 0
        self._done = 0

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:
        self._total = sum(len(batch.changes) for batch in batches)
        for source in plan.sources:
            to_do = sum(change.effort != "nothing" for change in source.changes)
            self._log.info("%s: %d documents, %d to do", source.source, len(source.changes), to_do)
        self._log.info(
            "%d documents in %d batches, at most about %d chunks", self._total, len(batches), plan.estimate.chunks
        )
        if self._watcher:
            self._watcher.planned(plan, batches)

    def batch_done(self, report: BatchReport) -> None:
        self._done += sum(not row.removed for row in report.rows)
        refused = sum(row.status != "indexed" and not row.removed for row in report.rows)
        self._log.info(
            "%d of %d documents; batch %d: %d chunks, %d embedded, %d documents without text or failed",
            self._done,
            self._total,
            report.batch,
            report.work.chunks_written,
            report.work.chunks_embedded,
            refused,
        )
        if self._watcher:
            self._watcher.batch_done(report)

    def published(self, report: RunReport) -> None:
        counts = report.documents.as_dict()
        self._log.info("version %d: %s", report.version, ", ".join(f"{n} {name}" for name, n in counts.items() if n))
        for refusal in report.refused:
            self._log.warning("refused: %s", refusal)
        if self._watcher:
            self._watcher.published(report)
