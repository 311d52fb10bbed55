"""The steps of a refresh, independent of the engine. No Prefect here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter, sleep
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
from parquetry.model import DocumentRow, Failure
from parquetry.nearest import hint
from parquetry.planning.batches import Batch, into_batches
from parquetry.planning.diff import Reindex
from parquetry.planning.match import named
from parquetry.planning.outage import needs_of, outages
from parquetry.planning.report import RunReport, Work, count_documents, held_back, with_all_paid
from parquetry.planning.rows import failure_of, rows_without_work
from parquetry.settings.sections import Settings
from parquetry.sources.nesting import place_in
from parquetry.sources.registry import Scope, open_source, scope_of_source, scopes_of
from parquetry.storage.lake.current import CurrentRows, current_rows, published_sources
from parquetry.storage.lake.lake import Lake
from parquetry.storage.replaced_files import reread
from parquetry.tasks.documents.batch import BatchReport, document_batches
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.models import models_of
from parquetry.tasks.documents.plan import RefreshPlan, check_budget, check_prices, plan_refresh
from parquetry.tasks.documents.publish import publish
from parquetry.tasks.documents.reading_progress import LOOK_SECONDS, ReadingProgress, SlowDocument
from parquetry.tasks.documents.run import BUDGET_KEY, Run
from parquetry.tasks.documents.space import DiskSpace, check_space, space_of
from parquetry.tasks.engine.base import Engine
from parquetry.tasks.engine.retries import Retries
from parquetry.waiting import Teller, Waits


@dataclass(frozen=True, slots=True)
class Request:
    """Request for a refresh."""

    settings: Settings
    targets: tuple[str, ...] = ()
    namespace: str | None = None
    allow_removals: bool = False
    force: Reindex | None = None
    scopes: tuple[Scope, ...] = ()
    """scopes to refresh, instead of targets"""
    kind: str = "refresh"
    compute_vectors_anew: bool = False
    """True to ignore stored vectors"""
    rehash: bool = False
    """True to compare the bytes of every document, even with an unchanged change token"""


class Observer(Protocol):
    """Observer of a refresh."""

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None: ...

    def documents_read(self, reading: ReadingProgress) -> None:
        """Receive the progress object to inspect while documents are read."""
        ...

    def document_read(self) -> None:
        """Count one more document of the plan; called from several threads."""
        ...

    def document_slow(self, slow: SlowDocument) -> None:
        """Receive a document that takes long to read; called from a separate thread."""
        ...

    def batch_done(self, report: BatchReport) -> None: ...

    def published(self, report: RunReport) -> None: ...


@dataclass
class _Collected:
    """Rows and reports of the batches."""

    rows: list[DocumentRow] = field(default_factory=list)
    reports: list[BatchReport] = field(default_factory=list)


def run_refresh(request: Request, engine: Engine, observer: Observer) -> RunReport:
    """Refresh: scan, plan, process batches, publish, record.

    Args:
        request: request to run.
        engine: engine that runs the steps and batches.
        observer: receives progress.

    Returns:
        The report, including failed documents, and sources stopped by a guard or a failed service.

    Raises:
        ParquetryError: nothing was published.
    """
    started = perf_counter()
    settings = request.settings
    scopes = scopes_of_request(request)
    _check_spending(settings, scopes)
    run = open_run(settings, scopes, request.kind, reuse_vectors=not request.compute_vectors_anew)
    with run:
        try:
            plan = engine.step("plan", lambda: from_newest(run, lambda: _plan(request, run, scopes)))
            collected = _process(plan, run, engine, observer)
            shards = [shard for report in collected.reports for shard in report.shards]
            version, published = engine.step("publish", lambda: publish(run, plan.known, collected.rows, shards))
        except BaseException as error:
            record_failure(run, request.kind, perf_counter() - started, error, {})
            raise
        report = _report(run, plan, collected, published, version, perf_counter() - started)
        report = _recorded(run, request, report)
    # The extraction processes have ended, and their memory is free. Not a step of the engine: a published run can no
    # longer be cancelled.
    report = _with_index(run, report)
    observer.published(report)
    return report


def check_request(request: Request) -> None:
    """Validate a request before anything is started.

    Raises:
        ParquetryError: any error that `run_refresh` would raise at the start.
    """
    scopes = scopes_of_request(request)
    _check_spending(request.settings, scopes)
    check_places(request.settings, scopes)


def scopes_of_request(request: Request) -> tuple[Scope, ...]:
    """Return the scopes of a refresh.

    Raises:
        SettingsError: as for `scopes_of`.
    """
    root = request.settings.corpus.root
    return request.scopes or scopes_of(
        request.settings, request.targets, request.namespace, published=lambda: published_sources(root)
    )


def _check_spending(settings: Settings, scopes: Sequence[Scope]) -> None:
    """Check that the prices needed for the budget, if any, are known.

    Raises:
        SettingsError: a price is unknown.
    """
    budget = settings.refresh.budget_usd
    check_prices(settings, (scope.namespace for scope in scopes), budget, BUDGET_KEY)
    if budget is not None and settings.extraction.include_image_descriptions:
        LanguageModel(settings.llm, "describe", Ledger(budget, BUDGET_KEY))


def plan_only(request: Request) -> RefreshPlan:
    """Return the plan of a refresh, without disk space."""
    return plan_with_space(request)[0]


def plan_with_space(request: Request) -> tuple[RefreshPlan, tuple[DiskSpace, ...]]:
    """Return the plan of a refresh and the space it takes on each disk. Write nothing, not even an empty corpus.

    Raises:
        ParquetryError: as for `run_refresh`.
    """
    settings = request.settings
    scopes = scopes_of_request(request)
    namespaces = {scope.namespace for scope in scopes}
    models = models_of(settings, namespaces)
    snapshot = Lake(settings.corpus.root).snapshot() if Lake.exists(settings.corpus.root) else None
    current = CurrentRows(snapshot, namespaces)
    sources = {(scope.namespace, scope.name): open_source(scope, settings.corpus.root) for scope in scopes}
    retries = Retries(settings.refresh.attempts, sleep)
    by_name = {(scope.namespace, scope.name): scope for scope in scopes}
    fetching = Fetching(sources, by_name, retries, sleep, Waits())
    try:
        plan = plan_refresh(
            settings,
            [(scope, sources[scope.namespace, scope.name]) for scope in scopes],
            current,
            models,
            allow_removals=request.allow_removals,
            force=request.force,
            retries=retries,
            rehash=fetching if request.rehash else None,
        )
    finally:
        fetching.close()
    return plan, space_of(plan, settings, snapshot, models)


def _plan(request: Request, run: Run, scopes: Sequence[Scope]) -> RefreshPlan:
    plan = plan_refresh(
        request.settings,
        [(scope, run.sources[scope.namespace, scope.name]) for scope in scopes],
        CurrentRows(run.base, {scope.namespace for scope in scopes}),
        run.models,
        allow_removals=request.allow_removals,
        force=request.force,
        retries=run.retries,
        rehash=run.fetching if request.rehash else None,
    )
    check_budget(plan, request.settings.refresh.budget_usd)
    check_space(space_of(plan, request.settings, run.base, run.models))
    return plan


def _process(plan: RefreshPlan, run: Run, engine: Engine, observer: Observer) -> _Collected:
    limits = run.settings.refresh
    batches = into_batches(
        plan.changes,
        lambda namespace: run.models[namespace].id,
        limits.batch_bytes,
        limits.batch_documents,
        lambda change: run.fetching.host(change.namespace, change.source),
    )
    observer.planned(plan, batches)
    run.reading.tell(observer.document_read)
    observer.documents_read(run.reading)
    collected = _Collected()
    for change in plan.changes:
        if change.effort == "row":
            collected.rows.extend(rows_without_work(change, run.stamp))
            run.reading.read(change)
    by_number = {batch.number: batch for batch in batches}
    with Teller(run.reading.overdue, observer.document_slow, LOOK_SECONDS):
        for report in engine.batches(batches, document_batches(run)):
            collected.reports.append(report)
            collected.rows.extend(report.rows)
            # Documents of a failed batch, or beyond the budget, may not have been read at all.
            for change in by_number[report.batch].changes:
                run.reading.read(change)
            observer.batch_done(report)
    return collected


def _report(
    run: Run,
    plan: RefreshPlan,
    collected: _Collected,
    published: Sequence[DocumentRow],
    version: int,
    seconds: float,
) -> RunReport:
    stages: Counter[str] = Counter()
    held = sum(report.held for report in collected.reports)
    out_of_budget = (held_back(held, run.ledger),) if held else ()
    lost = {key: each for report in collected.reports for key, each in report.lost.items()}
    for report in collected.reports:
        stages.update(report.seconds)
    return RunReport(
        run_id=run.stamp.run_id,
        version=version,
        version_before=run.base.version,
        seconds=seconds,
        documents=count_documents(plan.sources, published),
        work=with_all_paid(sum((report.work for report in collected.reports), Work()), run.ledger),
        failures=(*_unlisted(run, plan), *_failures(plan, published)),
        warnings=(
            *plan.warnings,
            *run.retries.notes,
            *(f"{note.uri}: {note.text}" for report in collected.reports for note in report.notes),
        ),
        refused=(*plan.refused, *out_of_budget),
        empty=plan.empty,
        outages=tuple(map(str, outages(needs_of(plan.sources, collected.rows, lost)))),
        left_out=plan.left_out,
        kept=plan.kept,
        seconds_by_stage={stage: round(taken, 3) for stage, taken in stages.items()},
        retries=run.retries.total,
    )


def _unlisted(run: Run, plan: RefreshPlan) -> tuple[Failure, ...]:
    """Return failures for sources with an incomplete listing, and for places of others that could not be listed."""
    found: list[Failure] = []
    for source in plan.sources:
        uri = run.scopes[source.namespace, source.source].settings.uri
        unseen = [(place_in(uri, place.path), "unlisted", place.detail) for place in source.unlisted]
        if source.broken is not None:
            unseen.append((uri, source.broken.reason, source.broken.detail))
        found.extend(
            Failure("", source.namespace, source.source, place, "failed", "scan", reason, detail, 1, run.stamp.run_id)
            for place, reason, detail in unseen
        )
    return tuple(found)


def _failures(plan: RefreshPlan, published: Sequence[DocumentRow]) -> tuple[Failure, ...]:
    """Return documents that failed in this run, then earlier failures that were not retried."""
    tried = {(row.namespace, row.document_id) for row in published}
    now = [failure_of(row) for row in published if not row.removed and row.status != "indexed"]
    before = [
        failure_of(change.known, known=True)
        for source in plan.sources
        for change in source.changes
        if change.action != "removed"
        and change.known is not None
        and change.known.status != "indexed"
        and (change.namespace, change.document_id) not in tried
    ]
    return tuple(sorted((*now, *before), key=lambda failure: (failure.status, failure.uri)))


def _with_index(run: Run, report: RunReport) -> RunReport:
    seconds, wrong = refresh_index(run)
    return replace(
        report,
        seconds=report.seconds + seconds,
        index_error=wrong,
        seconds_by_stage={**report.seconds_by_stage, "index": round(seconds, 3)},
    )


def _recorded(run: Run, request: Request, report: RunReport) -> RunReport:
    work = report.work
    told = {
        "status": "failed" if report.outages else "refused" if report.refused else "completed",
        "version_after": report.version,
        **report.documents.as_dict(),
        "chunks_written": work.chunks_written,
        "chunks_embedded": work.chunks_embedded,
        "chunks_reused": work.chunks_reused,
        "bytes_read": work.bytes_read,
        "tokens": work.tokens,
        "cost_usd": work.cost_usd,
        "error": "; ".join((*report.outages, *report.refused)) or None,
    }
    warnings = record(run, request.kind, report.seconds, report.failures, told)
    return replace(report, warnings=(*report.warnings, *warnings))


def reindex_request(
    settings: Settings, documents: tuple[str, ...], namespace: str | None, *, embeddings_only: bool
) -> Request:
    """Return a request to rebuild documents regardless of their hashes.

    Args:
        settings: settings of the corpus.
        documents: ids, uris, or globs over names and paths; empty for all.
        namespace: only documents of this namespace.
        embeddings_only: True to recompute vectors from the stored text; False to extract and chunk again, reusing
            existing vectors.

    Raises:
        SettingsError: a name matches no document.
    """
    published = reread(lambda: current_rows(Lake(settings.corpus.root).snapshot()))
    current = [row for row in published if namespace in (None, row.namespace)]
    if not current and namespace is not None:
        known = {row.namespace for row in published}
        raise SettingsError(
            f"no document of {settings.corpus.root} is in namespace {namespace!r}; {hint(namespace, known)}"
        )
    chosen: set[tuple[str, str]] = set()
    sources: set[tuple[str, str]] = set()
    for name in documents or ("*",):
        found = named(current, name)
        if not found:
            raise SettingsError(
                f"no document of {settings.corpus.root} is named {name!r}; `parquetry documents` lists them"
            )
        chosen.update((row.namespace, row.document_id) for row in found)
        sources.update((row.namespace, row.source) for row in found)
    force = Reindex("rechunk" if embeddings_only else "extract", lambda row: (row.namespace, row.document_id) in chosen)
    return Request(
        settings,
        namespace=namespace,
        force=force,
        scopes=tuple(
            scope_of_source(settings, *each, lambda: published_sources(settings.corpus.root))
            for each in sorted(sources)
        ),
        kind="reindex",
        compute_vectors_anew=embeddings_only,
    )
