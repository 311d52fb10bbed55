"""The steps of a refresh, independent of the engine. No Prefect here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from parquetry.embed.registry import calls_service, load_ahead
from parquetry.extract.media_types import by_filename
from parquetry.extract.readers import modules_ahead
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.pipeline import Pipeline, check_places, fetching_without_run, open_run
from parquetry.flows.pipelines.run_watch import RunWatch, watched
from parquetry.llm.spending import Ledger
from parquetry.model import DocumentRow, Listing
from parquetry.planning.batches import Batch, into_batches
from parquetry.planning.costs import as_column, total_usd
from parquetry.planning.diff import Reindex
from parquetry.planning.outage import needs_of, outages
from parquetry.planning.report import RunReport, Work, count_documents, held_back, with_all_paid, written_off
from parquetry.settings.sections import Settings
from parquetry.sources.base import Source
from parquetry.sources.registry import PublishedSource, Scope, has_sources, scopes_of
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.scopes import uploads_of
from parquetry.storage.database import open_ahead
from parquetry.storage.files.layout import layout_of
from parquetry.storage.index.known import IndexedRows, KnownTables
from parquetry.storage.lake.current import CurrentRows, published_sources
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.migrations import brought_up
from parquetry.tasks.batches.waiting import costs_of, notes, problems, suspension
from parquetry.tasks.budget import check_prices
from parquetry.tasks.documents.batch_report import BatchReport, awaited_of, held_of
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.listing import listing_failures
from parquetry.tasks.documents.models import Model, models_of
from parquetry.tasks.documents.plan import RefreshPlan, check_refresh_budget, failures_of, plan_refresh
from parquetry.tasks.documents.publish import publish
from parquetry.tasks.documents.reading_progress import LOOK_SECONDS
from parquetry.tasks.documents.row_changes import rows_of_changes
from parquetry.tasks.documents.row_spool import RowSpool
from parquetry.tasks.documents.run import BUDGET_KEY, DocumentRun
from parquetry.tasks.documents.space import DiskSpace, check_space, space_of
from parquetry.tasks.engine.base import Engine
from parquetry.tasks.engine.retries import Retries
from parquetry.waiting import Teller

_FIRST = 1000
"""listed documents of a source by whose names the extraction processes are prepared"""
_MUCH_READ = 4_000_000
"""bytes of documents after which a run gives memory back before it publishes, which takes a tenth of a second"""
_MANY_ROWS = 5000
"""rows after which it does so as well"""


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
    recompute_vectors: bool = False
    """True to ignore stored vectors"""
    rehash: bool = False
    """True to compare the bytes of every document, even with an unchanged change token"""

    @property
    def is_for_all(self) -> bool:
        """True if the request names no sources: it is for all that are configured."""
        return not (self.targets or self.scopes)


@dataclass
class _Collected:
    """Rows and reports of the batches."""

    rows: RowSpool
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
    with watched(request.settings, request.kind) as watch:
        observer = watch.observed(observer)
        if Lake.exists(request.settings.corpus.root):
            # For the index, whose sources and rows are asked for first.
            open_ahead()
        request = replace(request, settings=brought_up(request.settings))
        with closing(_known(request.settings)) as known:
            scopes = watch.scopes = scopes_of_request(request, known)
            _check_spending(request.settings, scopes)
            make = partial(DocumentRun, reuse_vectors=not request.recompute_vectors)
            run = open_run(make, request.settings, scopes, request.kind)
            # The index that told of the sources is open.
            run.known = known
            report = watch.published(_Refresh(run, request, scopes, watch, observer).execute(engine))
        observer.published(report)
    return report


def check_request(request: Request) -> None:
    """Validate a request before anything is started.

    Raises:
        ParquetryError: any error that `run_refresh` would raise at the start.
    """
    request = replace(request, settings=brought_up(request.settings, quietly=True))
    scopes = scopes_of_request(request)
    _check_spending(request.settings, scopes)
    check_places(request.settings, scopes)


def _known(settings: Settings) -> KnownTables:
    return KnownTables(layout_of(settings.corpus.root), settings.search)


def scopes_of_request(request: Request, known: KnownTables | None = None) -> tuple[Scope, ...]:
    """Return the scopes of a refresh.

    Args:
        request: the request.
        known: the index of the corpus, which may stay open; None to open and close one where needed.

    Raises:
        SettingsError: as for `scopes_of`.
    """
    if request.scopes:
        return request.scopes
    if known is None:
        with closing(_known(request.settings)) as opened:
            return scopes_of_request(request, opened)
    settings, namespace, tables = request.settings, request.namespace, known

    def published() -> list[PublishedSource]:
        return tables.read(lambda: published_sources(settings.corpus.root, tables.rows))

    uploads: tuple[Scope, ...] = ()
    targets = request.targets
    if UPLOADS in targets:
        # Those of which only the documents are left, too.
        of_documents = (each.namespace for each in published() if each.name == UPLOADS)
        uploads = uploads_of(settings, namespace, of_documents)
        # Without uploads, the name may be that of a folder.
        targets = tuple(target for target in targets if target != UPLOADS) if uploads else targets
    elif request.is_for_all:
        # What a refresh of everything does not find may be kept elsewhere at the moment.
        uploads = tuple(replace(scope, removes=False) for scope in uploads_of(settings, namespace))
    if uploads and not targets and not (request.is_for_all and has_sources(settings, namespace)):
        return uploads
    return (*scopes_of(settings, targets, namespace, published=published), *uploads)


def _check_spending(settings: Settings, scopes: Sequence[Scope]) -> None:
    """Check that the prices needed for the budget, if any, are known.

    Raises:
        SettingsError: a price is unknown.
    """
    budget = settings.refresh.budget_usd
    check_prices(settings, (scope.namespace for scope in scopes), budget, BUDGET_KEY)
    if budget is not None and settings.extraction.include_image_descriptions:
        from parquetry.llm.client import LanguageModel

        LanguageModel(settings.llm, "describe", Ledger(budget, BUDGET_KEY))


def plan_only(request: Request) -> RefreshPlan:
    """Return the plan of a refresh, without disk space."""
    return plan_with_space(request)[0]


def plan_with_space(request: Request) -> tuple[RefreshPlan, tuple[DiskSpace, ...]]:
    """Return the plan of a refresh and the space it takes on each disk. Write nothing, not even an empty corpus.

    Raises:
        ParquetryError: as for `run_refresh`.
    """
    settings = brought_up(request.settings)
    request = replace(request, settings=settings)
    with closing(_known(settings)) as known:
        scopes = scopes_of_request(request, known)
        namespaces = {scope.namespace for scope in scopes}
        models = models_of(settings, namespaces)
        snapshot = Lake(settings.corpus.root).snapshot() if Lake.exists(settings.corpus.root) else None
        with fetching_without_run(settings, scopes) as (sources, fetching, retries):

            def planned() -> RefreshPlan:
                current = known.rows(snapshot, namespaces) if snapshot else CurrentRows(None, namespaces)
                return _planned(request, sources, current, models, fetching, retries)

            plan = known.read(planned)
    return plan, space_of(plan, settings, snapshot, models)


def _planned(
    request: Request,
    sources: Sequence[tuple[Scope, Source]],
    current: CurrentRows,
    models: Mapping[str, Model],
    fetching: Fetching,
    retries: Retries,
    foreseen: Callable[[Sequence[Listing]], None] = lambda _: None,
) -> RefreshPlan:
    return plan_refresh(
        request.settings,
        sources,
        current,
        models,
        allow_removals=request.allow_removals,
        force=request.force,
        retries=retries,
        rehash=fetching if request.rehash else None,
        foreseen=foreseen,
    )


class _Refresh(Pipeline[DocumentRun, RefreshPlan, _Collected, tuple[int, Collection[DocumentRow]], RunReport]):
    """The steps of a refresh."""

    def __init__(
        self, run: DocumentRun, request: Request, scopes: Sequence[Scope], watch: RunWatch, observer: Observer
    ) -> None:
        super().__init__(run, watch, observer)
        self._request = request
        self._scopes = scopes

    def plan(self) -> RefreshPlan:
        run, settings = self.run, self.run.settings
        sources = [(scope, run.sources[scope.namespace, scope.name]) for scope in self._scopes]
        namespaces = {scope.namespace for scope in self._scopes}

        def planned() -> RefreshPlan:
            current = run.known.rows(run.base, namespaces)
            self.indexed = run.base.version if isinstance(current, IndexedRows) else None
            return _planned(self._request, sources, current, run.models, run.fetching, run.retries, self._open_ahead)

        plan = run.known.read(planned)
        # While batches are processed, other runs may need the file for their index.
        run.known.close()
        check_refresh_budget(plan, settings.refresh.budget_usd)
        check_space(space_of(plan, settings, run.base, run.models))
        return plan

    def process(self, plan: RefreshPlan, engine: Engine) -> _Collected:
        run, observer = self.run, self.observer
        limits = run.settings.refresh
        batches = into_batches(
            plan.changes,
            lambda namespace: run.models[namespace].id,
            limits.batch_bytes,
            limits.batch_documents,
            lambda change: run.fetching.host(change.namespace, change.source),
        )
        observer.planned(plan, batches)
        run.reading.on_read(observer.document_read)
        observer.documents_read(run.reading)
        collected = _Collected(run.rows)
        if any(tally.rows for _, tally in plan.tallies()):
            collected.rows.extend(rows_of_changes(plan.changes, run))
        with Teller(run.reading.overdue, observer.document_slow, LOOK_SECONDS):
            for report in self._processed(plan, batches, collected, engine):
                collected.reports.append(replace(report, rows=()))
                collected.rows.extend(report.rows)
                observer.batch_done(report)
        read = sum(report.work.bytes_read for report in collected.reports)
        if read >= _MUCH_READ or len(run.rows) >= _MANY_ROWS:
            run.give_memory_back()
        return collected

    def _processed(
        self, plan: RefreshPlan, batches: Sequence[Batch], collected: _Collected, engine: Engine
    ) -> Iterator[BatchReport]:
        settings = self.run.settings
        # Without new documents, too, a batch of an earlier run may have ended at its service.
        if not batches and not any(calls_service(settings.embedder_of(namespace)) for namespace in self.run.models):
            return
        from parquetry.flows.pipelines.document_rounds import processed

        estimate = plan.estimate if self._request.kind == "refresh" else None
        yield from processed(self.run, batches, collected.reports, engine, estimate)

    def _open_ahead(self, listings: Sequence[Listing]) -> None:
        """Start the extraction processes, which takes longest, and open meanwhile what batches need."""
        from parquetry.tasks.engine.fork_server import start_ahead

        first = (item for listing in listings for item in islice(listing.items, _FIRST))
        start_ahead(modules_ahead({by_filename(item.path) for item in first}))
        settings = self.run.settings
        names = sorted({settings.embedder_of(listing.namespace) for listing in listings})
        load_ahead(names, settings.embedding, settings.hub)
        open_ahead()

    def publish(self, plan: RefreshPlan, work: _Collected) -> tuple[int, Collection[DocumentRow]]:
        shards = [shard for report in work.reports for shard in report.shards]
        if shards:
            # For the search index, while commits wait for the disk.
            open_ahead()
        return publish(self.run, plan.known, work.rows, shards)

    def report(
        self,
        plan: RefreshPlan,
        work: _Collected,
        outcome: tuple[int, Collection[DocumentRow]],
        seconds: float,
    ) -> RunReport:
        run, (version, published) = self.run, outcome
        stages: Counter[str] = Counter()
        held = held_of(work.reports, work.rows)
        out_of_budget = (held_back(len(held), run.ledger),) if held else ()
        lanes = run.lanes
        awaited = awaited_of(work.reports) - {(row.namespace, row.document_id) for row in work.rows}
        lost = {key: each for report in work.reports for key, each in report.lost.items()}
        cut_off = outages(needs_of(plan.sources, work.rows, lost))
        listed = ((run.scopes[source.namespace, source.source], source) for source in plan.sources)
        for report in work.reports:
            stages.update(report.seconds)
        return RunReport(
            run_id=run.stamp.run_id,
            version=version,
            version_before=run.base.version,
            seconds=seconds,
            documents=count_documents(plan.sources, published),
            work=with_all_paid(sum((report.work for report in work.reports), Work()), run.ledger),
            failures=(*listing_failures(listed, run.stamp.run_id), *failures_of(plan, published)),
            warnings=(
                *plan.warnings,
                *run.retries.notes,
                *written_off(run.ledger),
                *(f"{note.uri}: {note.text}" for report in work.reports for note in report.notes),
            ),
            refused=(*plan.refused, *out_of_budget),
            held_sources=tuple(each.source for each in plan.sources if each.refused is not None or out_of_budget),
            empty=plan.empty,
            outages=tuple(map(str, cut_off)),
            failed_sources=tuple(outage.source for outage in cut_off),
            left_out=plan.left_out,
            kept=plan.kept,
            seconds_by_stage=stages,
            retries=run.retries.total,
            costs=run.costs((*costs_of(lanes), *(cost for report in work.reports for cost in report.costs))),
            estimated_usd=plan.estimate.expected_usd,
            suspended=suspension(lanes, len(awaited), "document"),
            batches=notes(lanes),
            batch_problems=problems(lanes),
        )

    def columns(self, report: RunReport) -> Mapping[str, object]:
        work = report.work
        return {
            **report.documents.as_dict(),
            "chunks_written": work.chunks_written,
            "chunks_embedded": work.chunks_embedded,
            "chunks_reused": work.chunks_reused,
            "bytes_read": work.bytes_read,
            "tokens": work.tokens,
            "cost_usd": work.cost_usd,
            "costs": as_column(report.costs),
            "estimated_usd": report.estimated_usd,
        }

    def columns_of_failure(self) -> Mapping[str, object]:
        costs = self.run.costs(costs_of(self.run.lanes))
        tokens = sum(cost.tokens for cost in costs if cost.purpose == "embed")
        return {"tokens": tokens, "cost_usd": total_usd(costs), "costs": as_column(costs)}
