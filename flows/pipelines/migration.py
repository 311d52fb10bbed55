"""The steps of a migration to another embedder or other chunk settings, independent of the engine. No Prefect here.

A build embeds stored chunks, or divides stored texts anew, beside what searches see. A switch builds what has changed
since and publishes all of it in one commit. No source is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from parquetry.errors import OutageError, PublishConflict, RefusedError, ServiceRefused, TransientError
from parquetry.flows.pipelines.migration_plan import (
    MigrationRequest,
    PlannedMigration,
    planned_migration,
    preview_of,
    with_models,
)
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.pipeline import Pipeline, open_run
from parquetry.flows.pipelines.run_watch import RunWatch, watched
from parquetry.planning.costs import as_column, total_usd
from parquetry.planning.report import DocumentCounts, RunReport, Work, held_back, with_all_paid
from parquetry.plural import counted
from parquetry.storage.lake.candidates import BuildProgress, MigrationCandidates, candidates_of
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.migrations import begin_migration, end_migration, switch_transaction
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.replaced_files import reread
from parquetry.tasks.budget import check_budget, check_prices
from parquetry.tasks.documents.migrate import BuildReport, into_migration_batches, migration_batches
from parquetry.tasks.documents.migration_run import MigrationRun
from parquetry.tasks.documents.run import BUDGET_KEY
from parquetry.tasks.engine.base import DirectEngine, Engine

KIND = "migrate"
"""kind of the run in the table `runs`"""
_NAMED = 3
"""documents named in a message"""


@dataclass
class _Built:
    """Reports of the batches of a run."""

    progress: BuildProgress
    """before the run"""
    reports: list[BuildReport] = field(default_factory=list)
    estimated_usd: float | None = 0.0


def run_migration(request: MigrationRequest, engine: Engine, observer: Observer) -> RunReport:
    """Build a migration beside the corpus, or switch to it: plan, embed, publish, record.

    Args:
        request: request to run.
        engine: engine that runs the steps and batches.
        observer: receives progress.

    Returns:
        The report; of a build, the version is unchanged.

    Raises:
        RefusedError: it would cost more than the budget, or not everything could be built and there is no switch.
        ParquetryError: nothing was published; what was embedded is kept.
    """
    settings = request.settings
    with watched(settings, KIND) as watch:
        observer = watch.observed(observer)
        lake = Lake(settings.corpus.root)
        try:
            planned = planned_migration(request, lake.snapshot())
        except (TransientError, ServiceRefused) as error:
            raise OutageError(f"the embedder cannot be opened: {error}") from error
        check_prices(planned.settings, planned.models, planned.settings.refresh.budget_usd, BUDGET_KEY)
        make = partial(MigrationRun, migration=planned.migration)
        run = open_run(make, planned.settings, (), KIND)
        run.models = planned.models
        report = watch.published(_Migrating(run, planned, request.action, watch, observer).execute(engine))
        observer.published(report)
    return report


class _Migrating(Pipeline[MigrationRun, _Built, _Built, int, RunReport]):
    """The steps of a migration."""

    def __init__(
        self,
        run: MigrationRun,
        planned: PlannedMigration,
        action: Literal["build", "switch"],
        watch: RunWatch,
        observer: Observer,
    ) -> None:
        super().__init__(run, watch, observer)
        self._planned = planned
        self._action = action
        self._batches = 0
        """number of batches so far"""

    def plan(self) -> _Built:
        run, planned = self.run, self._planned
        settings = run.settings
        preview = preview_of(planned, run.base)
        check_budget("this migration", preview.cost_usd, preview.amount.tokens, settings.refresh.budget_usd, BUDGET_KEY)
        if not planned.begun:
            begin_migration(run.lake.layout, planned.migration)
        return _Built(preview.progress, estimated_usd=preview.cost_usd)

    def process(self, plan: _Built, engine: Engine) -> _Built:
        with self._candidates(self.run.base) as candidates:
            self._build(candidates, plan, engine)
        return plan

    def publish(self, plan: _Built, work: _Built) -> int:  # noqa: ARG002 - they are the same
        return self.run.base.version if self._action == "build" else self._switch(work)

    def _candidates(self, snapshot: Snapshot) -> AbstractContextManager[MigrationCandidates]:
        return candidates_of(snapshot, self._planned.migration.mask, self._planned.targets)

    def _build(self, candidates: MigrationCandidates, built: _Built, engine: Engine) -> None:
        """Build what has no candidate."""
        run, limits = self.run, self.run.settings.refresh
        run.begin(candidates)
        unbuilt = candidates.unbuilt
        batches = into_migration_batches(unbuilt, run.models, limits.batch_bytes, limits.batch_documents)
        self.observer.migration_planned(len(unbuilt))
        for report in engine.batches(batches, migration_batches(run, self._batches)):
            built.reports.append(report)
            self.observer.migration_built(report.documents)
        self._batches += len(batches)

    def _switch(self, built: _Built) -> int:
        """Publish the candidates, after what other runs published meanwhile is built, too."""

        def attempt(_: PublishConflict | None) -> int:
            return reread(lambda: self._publish_newest(built))

        version = publish_with_retry(attempt, "nothing was published, what was built is kept: run it again")
        end_migration(self.run.lake.layout, self._planned.migration.key, "switched", self.run.stamp.at)
        return version

    def _publish_newest(self, built: _Built) -> int:
        run = self.run
        run.follow(run.lake.snapshot())
        # Namespaces that another run made meanwhile are in the newest version only.
        self._planned = with_models(self._planned, run.base)
        run.models = self._planned.models
        with self._candidates(run.base) as candidates:
            left = candidates.progress.left
            if not left:
                return self._commit(candidates)
            _check_whole(built.reports)
            self._build(candidates, built, DirectEngine())
        _check_whole(built.reports)
        raise PublishConflict(f"{counted(left, 'document')} had changed since they were built")

    def _commit(self, candidates: MigrationCandidates) -> int:
        run, namespaces = self.run, candidates.namespaces
        if not namespaces:
            return run.base.version
        return run.lake.publish_table(
            run.base,
            namespaces,
            lambda numbers: [candidates.rows(numbers, run.stamp)],
            run.stamp.run_id,
            switch_transaction(self._planned.migration),
        )

    def report(self, plan: _Built, work: _Built, outcome: int, seconds: float) -> RunReport:
        run, reports = self.run, work.reports
        failures = tuple(failure for each in reports for failure in each.failures)
        held = sum(each.held for each in reports)
        built = sum(each.documents for each in reports)
        return RunReport(
            run_id=run.stamp.run_id,
            version=outcome,
            version_before=run.base.version,
            seconds=seconds,
            documents=DocumentCounts(
                scanned=plan.progress.documents,
                changed=built,
                unchanged=plan.progress.documents - built - len(failures) - held,
                failed=len(failures),
            ),
            work=with_all_paid(sum((each.work for each in reports), Work()), run.ledger),
            failures=failures,
            warnings=run.retries.notes,
            refused=(held_back(held, run.ledger),) if held else (),
            outages=_outages(reports),
            retries=run.retries.total,
            costs=run.costs(cost for each in reports for cost in each.costs),
            estimated_usd=plan.estimated_usd,
        )

    def columns(self, report: RunReport) -> Mapping[str, object]:
        work = report.work
        return {
            **report.documents.as_dict(),
            "namespaces": sorted(self._planned.models),
            "chunks_written": work.chunks_written,
            "chunks_embedded": work.chunks_embedded,
            "chunks_reused": work.chunks_reused,
            "tokens": work.tokens,
            "cost_usd": work.cost_usd,
            "costs": as_column(report.costs),
            "estimated_usd": report.estimated_usd,
        }

    def columns_of_failure(self) -> Mapping[str, object]:
        costs = self.run.costs()
        tokens = sum(cost.tokens for cost in costs)
        return {"tokens": tokens, "cost_usd": total_usd(costs), "costs": as_column(costs)}


def _outages(reports: Sequence[BuildReport]) -> tuple[str, ...]:
    """Return one line if the embedding service failed."""
    lost = [each for each in reports if each.lost is not None]
    if not lost:
        return ()
    documents = counted(sum(len(each.failures) for each in lost), "document")
    detail = lost[0].lost.detail if lost[0].lost else ""
    return (f"the embedding service failed for {documents} ({detail}); what was embedded is kept: run it again",)


def _check_whole(reports: Sequence[BuildReport]) -> None:
    """Stop a switch that would leave documents behind.

    Raises:
        OutageError, RefusedError: something could not be built.
    """
    if outages := _outages(reports):
        raise OutageError(f"{outages[0]}; nothing was published")
    if held := sum(each.held for each in reports):
        raise RefusedError(
            f"the budget ({BUDGET_KEY}) is reached before {counted(held, 'document')}; nothing was published, what was "
            "paid for is kept: raise the budget and run again"
        )
    failures = [failure for each in reports for failure in each.failures]
    if failures:
        named = "; ".join(f"{each.uri}: {each.reason}: {each.detail}" for each in failures[:_NAMED])
        raise RefusedError(
            f"{counted(len(failures), 'document')} cannot be built from what is stored ({named}); nothing was "
            "published. `parquetry doctor --fix` repairs stored texts, `parquetry reindex NAME` reads a document again"
        )
