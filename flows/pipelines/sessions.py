"""The steps of learning from chat sessions, independent of the engine. No Prefect here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

from parquetry.errors import SettingsError
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.pipeline import Pipeline, check_places, fetching_without_run, open_run
from parquetry.flows.pipelines.run_watch import RunWatch, watched
from parquetry.llm.client import LanguageModel
from parquetry.llm.spending import Ledger
from parquetry.model import Visibility
from parquetry.planning.costs import as_column
from parquetry.planning.outage import outages
from parquetry.planning.rows import failure_of
from parquetry.sessions.report import SessionsReport, count_decisions
from parquetry.settings.sections import Settings
from parquetry.settings.source import SourceSettings
from parquetry.sources.registry import Scope, scopes_of
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.current import current_rows, published_sources
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.migrations import brought_up
from parquetry.tasks.batches.waiting import notes, problems, suspension
from parquetry.tasks.budget import check_prices
from parquetry.tasks.engine.base import Engine
from parquetry.tasks.sessions.ahead import QuestionLane, open_question_lane, without
from parquetry.tasks.sessions.batch import LearnedSession, into_session_batches, session_batches
from parquetry.tasks.sessions.llm_cache import CacheOnlyLlm
from parquetry.tasks.sessions.outage import session_needs
from parquetry.tasks.sessions.plan import SessionPlan, check_session_budget, known_of, plan_sessions
from parquetry.tasks.sessions.publish import Outcome, Review, publish_learned
from parquetry.tasks.sessions.run import SessionRun, prompts_of

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
    statement: str = ""
    """name of the one file in the target that is read: a statement, to be taken as it is; empty for sessions"""

    @property
    def is_for_all(self) -> bool:
        """True if the request names no sources: it is for all that are configured."""
        return not self.targets


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
    if request.statement:
        scopes = tuple(replace(scope, prefix=f"{scope.prefix}/{request.statement}".lstrip("/")) for scope in scopes)
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
    request: SessionsRequest, engine: Engine, observer: Observer, review: Review | None = None
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
    with watched(request.settings, KIND) as watch:
        observer = watch.observed(observer)
        settings = brought_up(request.settings)
        request = replace(request, settings=settings)
        scopes = watch.scopes = session_scopes(request)
        prompts = prompts_of(settings)
        # No corpus is created for a run without a usable model.
        _check_spending(settings, scopes)
        make = partial(
            SessionRun, prompts=prompts, retry_quarantined=request.retry_quarantined, stated=bool(request.statement)
        )
        run = open_run(make, settings, scopes, KIND)
        report = watch.published(_Learning(run, scopes, watch, observer, review).execute(engine))
        observer.sessions_published(report)
    return report


def check_sessions_request(request: SessionsRequest) -> None:
    """Validate a request before anything is started.

    Raises:
        ParquetryError: any error that `run_sessions` would raise at the start.
    """
    settings = brought_up(request.settings, quietly=True)
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
    settings = brought_up(request.settings)
    scopes = session_scopes(request)
    rows, answers = [], None
    if Lake.exists(settings.corpus.root):
        lake = Lake(settings.corpus.root)
        rows = current_rows(lake.snapshot(), {scope.namespace for scope in scopes}, what="knowledge")
        answers = Answers(lake.layout)
    with fetching_without_run(settings, scopes) as (sources, fetching, retries):
        return plan_sessions(
            settings,
            sources,
            known_of(rows),
            prompts_of(settings).distill,
            fetching,
            "plan",
            retry_quarantined=request.retry_quarantined,
            llm=CacheOnlyLlm(settings.llm.model or "", answers, retry_quarantined=request.retry_quarantined),
            retries=retries,
        )


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


class _Learning(Pipeline[SessionRun, SessionPlan, list[LearnedSession], Outcome, SessionsReport]):
    """The steps of learning from sessions."""

    def __init__(
        self, run: SessionRun, scopes: Sequence[Scope], watch: RunWatch, observer: Observer, review: Review | None
    ) -> None:
        super().__init__(run, watch, observer)
        self._scopes = scopes
        self._review = review
        self._ahead: QuestionLane | None = None

    def plan(self) -> SessionPlan:
        run, settings = self.run, self.run.settings
        rows = current_rows(run.base, {scope.namespace for scope in self._scopes}, what="knowledge")
        budget = settings.sessions.budget_usd
        llm = CacheOnlyLlm(run.llm.model, Answers(run.lake.layout), retry_quarantined=run.retry_quarantined)
        plan = plan_sessions(
            settings,
            [(scope, run.sources[scope.namespace, scope.name]) for scope in self._scopes],
            known_of(rows),
            run.prompts.distill,
            run.fetching,
            run.stamp.run_id,
            retry_quarantined=run.retry_quarantined,
            llm=llm if budget is not None and not run.stated else None,
            keep=run.spool.keep,
            retries=run.retries,
            check_cancelled=run.check_cancelled,
        )
        check_session_budget(plan, budget)
        return plan

    def process(self, plan: SessionPlan, engine: Engine) -> list[LearnedSession]:
        limits = self.run.settings.sessions
        self._ahead = open_question_lane(self.run)
        if self._ahead is not None:
            with closing(self._ahead):
                self._ahead.run_ahead(plan)
        plan = self._ready(plan)
        batches = into_session_batches(plan.sessions, limits.batch_sessions, limits.workers)
        self.observer.sessions_planned(plan, batches)
        self.observer.sessions_asked(self.run.asking)
        learned: list[LearnedSession] = []
        for report in engine.batches(batches, session_batches(self.run)):
            learned.extend(report.learned)
            self.observer.sessions_learned(report)
        return learned

    def _ready(self, plan: SessionPlan) -> SessionPlan:
        """Return the plan without the sessions that wait for a batch."""
        return plan if self._ahead is None else without(plan, self._ahead.waiting)

    def publish(self, plan: SessionPlan, work: list[LearnedSession]) -> Outcome:
        return publish_learned(self.run, self._ready(plan), work, self._review)

    def report(self, plan: SessionPlan, work: list[LearnedSession], outcome: Outcome, seconds: float) -> SessionsReport:
        run, plan = self.run, self._ready(plan)
        lanes = () if self._ahead is None else self._ahead.lanes
        waiting = 0 if self._ahead is None else len(self._ahead.waiting)
        usage = run.asked.values()
        cut_off = outages(session_needs(plan, work, outcome.failed))
        # A file without a session is expected; any other reason to skip one is not.
        usual = ("extract/no-session", "extract/empty")
        failures = [
            failure_of(row)
            for row in outcome.rows
            if row.status == "failed" or (row.status == "skipped" and not (row.error or "").startswith(usual))
        ]
        return SessionsReport(
            run_id=run.stamp.run_id,
            version=outcome.version,
            version_before=run.base.version,
            seconds=seconds,
            sessions=_counts(plan, outcome),
            entries=count_decisions(outcome.decisions),
            calls=sum(each.calls for each in usage),
            cached=run.llm.looked_up,
            tokens=run.tokens,
            embedding_tokens=run.embedding_tokens,
            cost_usd=run.cost_usd,
            costs=run.costs(_tokens_by_source(work)),
            estimated_usd=plan.estimate.expected_usd if plan.estimate.priced else None,
            failures=(*plan.failures, *sorted(failures, key=lambda failure: failure.uri)),
            warnings=(*plan.warnings, *run.retries.notes, *run.ledger.warnings),
            decisions=outcome.decisions,
            outages=tuple(map(str, cut_off)),
            failed_sources=tuple(outage.source for outage in cut_off),
            refused=() if self._ahead is None else self._ahead.refused,
            held_sources=tuple({each.name for each in self._scopes} if self._ahead and self._ahead.refused else ()),
            suspended=suspension(lanes, waiting, "session"),
            batches=notes(lanes),
            batch_problems=problems(lanes),
        )

    def columns(self, report: SessionsReport) -> Mapping[str, object]:
        counts = report.sessions
        return {
            "scanned": counts["scanned"],
            "added": counts["new"],
            "changed": counts["grown"] + counts["retried"],
            "unchanged": counts["unchanged"],
            "failed": counts["failed"],
            **self.columns_of_failure(),
            "costs": as_column(report.costs),
            "estimated_usd": report.estimated_usd,
        }

    def columns_of_failure(self) -> Mapping[str, object]:
        costs = as_column(self.run.costs({}))
        return {"tokens": self.run.tokens, "cost_usd": self.run.cost_usd, "costs": costs}

    def is_failure(self, error: BaseException) -> bool:
        """True unless the run is suspended for review: it restarts when the answer is there."""
        return isinstance(error, Exception | KeyboardInterrupt)


def _tokens_by_source(learned: Iterable[LearnedSession]) -> Mapping[tuple[str, str], int]:
    """Return the tokens that the sessions of each source took: namespace and name -> tokens."""
    found: Counter[tuple[str, str]] = Counter()
    for each in learned:
        file = each.found.file
        found[file.namespace, file.source] += each.spent.input_tokens + each.spent.output_tokens
    return found


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
