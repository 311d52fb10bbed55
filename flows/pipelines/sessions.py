"""The steps of learning from chat sessions, independent of the engine. No Prefect here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol

from parquetry.errors import SettingsError
from parquetry.flows.pipelines.run_lifecycle import (
    check_places,
    from_newest,
    open_run,
    record,
    record_failure,
    refresh_index,
)
from parquetry.llm.client import LanguageModel
from parquetry.llm.spending import Ledger
from parquetry.model import Visibility
from parquetry.planning.outage import outages
from parquetry.planning.rows import failure_of
from parquetry.sessions.report import SessionsReport, count_decisions
from parquetry.settings.sections import Settings, SourceSettings
from parquetry.sources.registry import Scope, open_source, scopes_of
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.current import current_rows, published_sources
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.plan import check_prices
from parquetry.tasks.documents.run import Run
from parquetry.tasks.engine.base import Engine
from parquetry.tasks.engine.retries import Retries
from parquetry.tasks.sessions.asking import Asking
from parquetry.tasks.sessions.batch import (
    LearnedSession,
    SessionBatch,
    SessionBatchReport,
    into_session_batches,
    session_batches,
)
from parquetry.tasks.sessions.llm_cache import CacheOnlyLlm
from parquetry.tasks.sessions.outage import session_needs
from parquetry.tasks.sessions.plan import SessionPlan, check_session_budget, known_of, plan_sessions
from parquetry.tasks.sessions.publish import Outcome, Review, publish_learned
from parquetry.tasks.sessions.run import SessionRun, prompts_of
from parquetry.waiting import Waits

KIND = "sessions"
"""kind of the run in the table `runs`"""


@dataclass(frozen=True, slots=True)
class AdHoc:
    """Owner of the sessions in ad-hoc targets."""

    user_id: str | None = None
    org_id: str | None = None
    widest: Visibility | None = None
    """maximum visibility of what is learned; None for the owner only"""

    def __bool__(self) -> bool:
        return (self.user_id, self.org_id, self.widest) != (None, None, None)


@dataclass(frozen=True, slots=True)
class SessionsRequest:
    """Request for a run over sessions."""

    settings: Settings
    targets: tuple[str, ...] = ()
    namespace: str | None = None
    owner: AdHoc = field(default_factory=AdHoc)
    retry_quarantined: bool = False
    """True to retry quarantined windows"""


class SessionsObserver(Protocol):
    """Observer of a run over sessions."""

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None: ...

    def sessions_asked(self, asking: Asking) -> None: ...

    def sessions_learned(self, report: SessionBatchReport) -> None: ...

    def sessions_published(self, report: SessionsReport) -> None: ...


def session_scopes(request: SessionsRequest) -> tuple[Scope, ...]:
    """Return the scopes of a run: configured sources of sessions, or ad-hoc targets with the given owner.

    Raises:
        SettingsError: there are no sources, a target does not exist, or an owner is given for a configured source.
    """
    settings, owner = request.settings, request.owner
    scopes = scopes_of(
        settings,
        request.targets,
        request.namespace,
        content="sessions",
        published=lambda: published_sources(settings.corpus.root),
    )
    if not owner:
        return scopes
    _owner_checked(owner)
    configured = [scope.name for scope in scopes if scope.settings in settings.source]
    if configured:
        raise SettingsError(
            "--user, --org and --max-visibility are for places that the settings do not name; "
            f"{configured[0]} is a configured source: its [[source]] table says whose its sessions are"
        )
    return tuple(replace(scope, settings=_owned(scope.settings, owner)) for scope in scopes)


def run_sessions(
    request: SessionsRequest, engine: Engine, observer: SessionsObserver, review: Review | None = None
) -> SessionsReport:
    """Learn from sessions: scan, read, distil, compare, publish, record.

    Args:
        request: request to run.
        engine: engine that runs the steps and batches.
        observer: receives progress.
        review: asks for approval of merges before anything is published; None to publish without review.

    Returns:
        The report, including failed sessions, and sources with a failed service.

    Raises:
        ParquetryError: nothing was published; paid LLM answers are kept.
    """
    started = perf_counter()
    settings = request.settings
    scopes = session_scopes(request)
    prompts = prompts_of(settings)
    # No corpus is created for a run without a usable model.
    _check_spending(settings, scopes)
    run = open_run(settings, scopes, KIND)
    with run, SessionRun(run, prompts, Ledger(settings.sessions.budget_usd), request.retry_quarantined) as session_run:
        try:
            plan = engine.step("plan", lambda: from_newest(run, lambda: _plan(session_run, scopes)))
            learned = _learn(plan, session_run, engine, observer)
            outcome = engine.step("publish", lambda: publish_learned(session_run, plan, learned, review))
        except BaseException as error:
            # A run suspended for review has not failed; it restarts when the answer is there.
            if isinstance(error, Exception | KeyboardInterrupt):
                record_failure(run, KIND, perf_counter() - started, error, _spent(session_run))
            raise
        report = _report(session_run, plan, outcome, perf_counter() - started)
        report = replace(report, outages=_outages(plan, learned, outcome))
        report = _recorded(session_run, report)
    report = _with_index(run, report)
    observer.sessions_published(report)
    return report


def check_sessions_request(request: SessionsRequest) -> None:
    """Validate a request before anything is started.

    Raises:
        ParquetryError: any error that `run_sessions` would raise at the start.
    """
    settings = request.settings
    scopes = session_scopes(request)
    check_places(settings, scopes)
    prompts_of(settings)
    _check_spending(settings, scopes)


def _check_spending(settings: Settings, scopes: Sequence[Scope]) -> None:
    """Check that the model is usable, and that the prices needed for the budget, if any, are known.

    Raises:
        SettingsError: no model is configured, its key is missing, or a price is unknown.
    """
    ledger = Ledger(settings.sessions.budget_usd)
    LanguageModel(settings.llm, "distill", ledger)
    check_prices(settings, (scope.namespace for scope in scopes), ledger.budget_usd, ledger.key)


def plan_sessions_only(request: SessionsRequest) -> SessionPlan:
    """Return what a run would do and cost. Write nothing, not even an empty corpus, and call no language model.

    Raises:
        ParquetryError: as for `run_sessions`.
    """
    settings = request.settings
    scopes = session_scopes(request)
    rows, answers = [], None
    if Lake.exists(settings.corpus.root):
        lake = Lake(settings.corpus.root)
        rows = current_rows(lake.snapshot(), {scope.namespace for scope in scopes}, what="knowledge")
        answers = Answers(lake.layout)
    sources = {(scope.namespace, scope.name): open_source(scope, settings.corpus.root) for scope in scopes}
    retries = Retries(settings.refresh.attempts, _wait)
    by_name = {(scope.namespace, scope.name): scope for scope in scopes}
    fetching = Fetching(sources, by_name, retries, _wait, Waits())
    try:
        return plan_sessions(
            settings,
            [(scope, sources[scope.namespace, scope.name]) for scope in scopes],
            known_of(rows),
            prompts_of(settings).distill,
            fetching,
            "plan",
            retry_quarantined=request.retry_quarantined,
            llm=CacheOnlyLlm(settings.llm.model or "", answers, retry_quarantined=request.retry_quarantined),
            retries=retries,
        )
    finally:
        fetching.close()


def _owned(source: SourceSettings, owner: AdHoc) -> SourceSettings:
    values = {"user_id": owner.user_id, "org_id": owner.org_id, "visibility": owner.widest}
    return SourceSettings(
        name=source.name, uri=source.uri, content="sessions", **{k: v for k, v in values.items() if v}
    )


def _owner_checked(owner: AdHoc) -> None:
    if owner.widest == "individual" and not owner.user_id:
        raise SettingsError("--max-visibility individual needs --user: whose sessions they are")
    if owner.widest == "organization" and not owner.org_id:
        raise SettingsError("--max-visibility organization needs --org: whose sessions they are")


def _wait(seconds: float) -> None:
    time.sleep(seconds)


def _plan(run: SessionRun, scopes: Sequence[Scope]) -> SessionPlan:
    base, settings = run.run, run.run.settings
    rows = current_rows(base.base, {scope.namespace for scope in scopes}, what="knowledge")
    budget = settings.sessions.budget_usd
    llm = CacheOnlyLlm(run.llm.model, Answers(base.lake.layout), retry_quarantined=run.retry_quarantined)
    plan = plan_sessions(
        settings,
        [(scope, base.sources[scope.namespace, scope.name]) for scope in scopes],
        known_of(rows),
        run.prompts.distill,
        base.fetching,
        base.stamp.run_id,
        retry_quarantined=run.retry_quarantined,
        llm=llm if budget is not None else None,
        keep=run.spool.keep,
        retries=base.retries,
        check_cancelled=base.check_cancelled,
    )
    check_session_budget(plan, budget)
    return plan


def _learn(plan: SessionPlan, run: SessionRun, engine: Engine, observer: SessionsObserver) -> list[LearnedSession]:
    limits = run.run.settings.sessions
    batches = into_session_batches(plan.sessions, limits.batch_sessions, limits.workers)
    observer.sessions_planned(plan, batches)
    observer.sessions_asked(run.asking)
    learned: list[LearnedSession] = []
    for report in engine.batches(batches, session_batches(run)):
        learned.extend(report.learned)
        observer.sessions_learned(report)
    return learned


def _report(run: SessionRun, plan: SessionPlan, outcome: Outcome, seconds: float) -> SessionsReport:
    usage = run.asked.values()
    # A file without a session is expected; any other reason to skip one is not.
    usual = ("extract/no-session", "extract/empty")
    failures = [
        failure_of(row)
        for row in outcome.rows
        if row.status == "failed" or (row.status == "skipped" and not (row.error or "").startswith(usual))
    ]
    return SessionsReport(
        run_id=run.run.stamp.run_id,
        version=outcome.version,
        version_before=run.run.base.version,
        seconds=seconds,
        sessions=_counts(plan, outcome),
        entries=count_decisions(outcome.decisions),
        calls=sum(each.calls for each in usage),
        cached=run.llm.looked_up,
        tokens=run.tokens,
        embedding_tokens=run.embedding_tokens,
        cost_usd=run.cost_usd,
        failures=(*plan.failures, *sorted(failures, key=lambda failure: failure.uri)),
        warnings=(*plan.warnings, *run.run.retries.notes, *run.ledger.warnings),
        decisions=outcome.decisions,
    )


def _outages(plan: SessionPlan, learned: Sequence[LearnedSession], outcome: Outcome) -> tuple[str, ...]:
    return tuple(map(str, outages(session_needs(plan, learned, outcome.failed))))


def _counts(plan: SessionPlan, outcome: Outcome) -> Mapping[str, int]:
    """Count the planned sessions by outcome."""
    counts = dict(plan.counts)
    failed = {row.document_id for row in outcome.rows if row.status == "failed"}
    for found in plan.sessions:
        if found.ref.session_id in failed:
            counts[found.change] -= 1
            counts["failed"] += 1
        elif found.ref.session_id in outcome.taken:
            counts[found.change] -= 1
            counts["unchanged"] += 1
    lost = sum(copy.found.ref.session_id in failed for copy in plan.copies)
    counts["unchanged"] -= lost
    counts["failed"] += lost
    return counts


def _with_index(run: Run, report: SessionsReport) -> SessionsReport:
    seconds, wrong = refresh_index(run)
    return replace(report, seconds=report.seconds + seconds, index_error=wrong)


def _recorded(run: SessionRun, report: SessionsReport) -> SessionsReport:
    counts = report.sessions
    told = {
        "status": "failed" if report.outages else "completed",
        "error": "; ".join(report.outages) or None,
        "version_after": report.version,
        "scanned": counts["scanned"],
        "added": counts["new"],
        "changed": counts["grown"] + counts["retried"],
        "unchanged": counts["unchanged"],
        "failed": counts["failed"],
        **_spent(run),
    }
    warnings = record(run.run, KIND, report.seconds, report.failures, told)
    return replace(report, warnings=(*report.warnings, *warnings))


def _spent(run: SessionRun) -> dict[str, object]:
    return {"tokens": run.tokens, "cost_usd": run.cost_usd}
