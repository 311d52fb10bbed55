"""Runs over whole sources: refresh, reindex, sessions, restore, analyze. Each is carried out alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from parquetry.errors import IndexNotWritten, RunSuspended, SettingsError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.reindex import reindex_request
from parquetry.flows.pipelines.sessions import AdHoc, SessionsRequest, run_sessions
from parquetry.freed_memory import give_back
from parquetry.planning.report import RunReport
from parquetry.planning.rows import new_stamp
from parquetry.serving.jobs.context import JobContext, failure_of
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.indexing import update_index
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.reviewing import reviewed_sessions
from parquetry.serving.jobs.statements import learn_statement
from parquetry.serving.jobs.write_outcomes import JobOutcome
from parquetry.sessions.report import SessionsReport
from parquetry.settings.sections import Settings, override
from parquetry.sources.registry import scopes_of
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.analysis.course import Stage
from parquetry.storage.lake.current import published_sources
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.rewrite import restore_version

MOST_LISTED = 1_000
"""failures, warnings and removed documents that a result names"""


def carry_out_run(context: JobContext, job: Job, engine: StoppableEngine, observer: Observer) -> JobOutcome:
    """Carry out a run.

    Args:
        context: what jobs share.
        job: a job of such a kind.
        engine: runs the steps.
        observer: receives progress.

    Raises:
        ParquetryError: nothing was published.
    """
    report: RunReport | SessionsReport
    match job.kind:
        case "refresh":
            report = run_refresh(refresh_request(context, job), engine, observer)
        case "reindex":
            report = run_refresh(reindex_job_request(context, job), engine, observer)
        case "sessions" if job.payload.get("stated"):
            return _statement(context, job, engine, observer)
        case "sessions" if job.payload.get("review"):
            learned = reviewed_sessions(context, job, _sessions(context, job), engine, observer)
            if isinstance(learned, JobOutcome):
                return learned
            report = learned
        case "sessions":
            report = run_sessions(_sessions(context, job), engine, observer)
        case "restore":
            return _restore(context, job)
        case "analyze":
            return _analyze(context, engine)
        case _:
            raise ValueError(f"{job.kind} is no run over whole sources")
    context.follow(report.version)
    # A search builds an index that the run could not write, and a later run takes what a batch brings.
    error = report.error
    failed = error is not None and not isinstance(error, IndexNotWritten | RunSuspended)
    return JobOutcome(bounded(report.as_json()), failure_of(error) if error is not None and failed else None)


def refresh_request(context: JobContext, job: Job) -> Request:
    """Return the request of a refresh.

    Raises:
        SettingsError: a target is no source of this service.
    """
    settings, payload = _within_budget(context.settings, job), job.payload
    targets = tuple(payload.get("targets") or ())
    options: dict[str, Any] = {name: bool(payload.get(name)) for name in ("allow_removals", "rehash")}
    mine = tuple(scope for scope in context.scopes if scope.settings.content == "documents")
    if not targets and mine:
        chosen = tuple(scope for scope in mine if job.namespace in (None, scope.namespace))
        return Request(settings, namespace=job.namespace, scopes=chosen, **options)

    root = settings.corpus.root
    scopes = scopes_of(settings, targets, job.namespace, published=lambda: published_sources(root))
    known = {*(source.name for source in settings.source), *(scope.name for scope in context.scopes)}
    if foreign := [scope.name for scope in scopes if scope.name not in known]:
        # Whoever may ask for a refresh may not thereby read any file of this machine.
        names = ", ".join(sorted(known)) or "none are configured"
        raise SettingsError(f"{foreign[0]} is no source of this service ({names}); add it as a [[source]] table")
    return Request(settings, targets, job.namespace, scopes=scopes, **options)


def bounded(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report whose lists name no more than fits into a result."""
    return {name: value[:MOST_LISTED] if isinstance(value, list) else value for name, value in report.items()}


def _within_budget(settings: Settings, job: Job) -> Settings:
    """Return the settings with the budget of a job, if it has one."""
    budget = job.payload.get("budget_usd")
    return settings if budget is None else override(settings, {"refresh": {"budget_usd": float(budget)}})


def reindex_job_request(context: JobContext, job: Job) -> Request:
    """Return the request of a reindex.

    Raises:
        SettingsError: it names no documents, or one that does not exist.
    """
    documents = tuple(job.payload.get("documents") or ())
    if bool(documents) == bool(job.payload.get("all")):
        raise SettingsError('a reindex takes "documents" or "all": true; nothing was done')
    only = bool(job.payload.get("embeddings_only"))
    return reindex_request(_within_budget(context.settings, job), documents, job.namespace, embeddings_only=only)


def _statement(context: JobContext, job: Job, engine: StoppableEngine, observer: Observer) -> JobOutcome:
    file, namespace = Path(job.payload["stated"]), job.namespace or context.settings.corpus.namespace
    version, decision = learn_statement(context.settings, file, namespace, _owner(job), engine, observer)
    context.follow(version)
    return JobOutcome({"version": version, "statement": decision.as_json()})


def _owner(job: Job) -> AdHoc:
    return AdHoc(job.payload.get("user_id"), job.payload.get("org_id"), job.payload.get("max_visibility"))


def _sessions(context: JobContext, job: Job) -> SessionsRequest:
    payload, owner = job.payload, _owner(job)
    targets = tuple(payload.get("targets") or ())
    return SessionsRequest(
        context.settings, targets, job.namespace, owner, bool(payload.get("retry_quarantined", False))
    )


def _analyze(context: JobContext, engine: StoppableEngine) -> JobOutcome:
    settings = context.settings
    told: list[Stage] = []

    def look(stage: Stage) -> None:
        engine.check()
        if stage not in told:
            told.append(stage)
            engine.on_step(stage)

    try:
        done = analyze(Lake(settings.corpus.root).snapshot(), settings.search, look=look)
    finally:
        give_back()
    return JobOutcome(asdict(done))


def _restore(context: JobContext, job: Job) -> JobOutcome:
    settings, version = context.settings, int(job.payload["version"])
    Lake(settings.corpus.root)
    lake = Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)
    done = restore_version(lake, version, new_stamp(), job.namespace)
    update_index(context)
    context.follow(done.version)
    result: dict[str, Any] = {"run_id": done.run_id, "version": done.version, "restored_version": version}
    for name, rows in (("documents", done.documents), ("entries", done.entries)):
        removed = sum(row.removed for row in rows)
        result[name] = {"restored": len(rows) - removed, "removed": removed}
    return JobOutcome(result)
