"""Batches of a refresh that other processes and machines process: what goes to them, and what comes back.

An order names the documents of a batch and the run; the report has counts, rows of `documents` and names of shards.
Documents, texts and vectors are read and written by the worker alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Self

from pydantic import Field, TypeAdapter

from parquetry.embed.base import Gate, Vectors
from parquetry.errors import SettingsError, StorageError
from parquetry.llm.spending import Purpose, Usage
from parquetry.planning.batches import Batch, batches_with
from parquetry.planning.outage import Key, Lost
from parquetry.settings.sections import Settings
from parquetry.sources.providers import is_read_anywhere
from parquetry.storage.lake.allowances import Allowances
from parquetry.tasks.batches.sending import SendingLane, Sent
from parquetry.tasks.documents.allowance import AllowanceLedger, BatchAllowance, ledger_of, prices_of
from parquetry.tasks.documents.batch import failed_batch, process_batch
from parquetry.tasks.documents.batch_report import BatchReport
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.result_orders import ResultsOrder, carry_out_results
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.documents.worker import RunOrder, RunWorker, identity_of, joined
from parquetry.tasks.documents.worker_lanes import LaneOrder, lane_order
from parquetry.tasks.engine.base import ATTEMPTS, RemoteBatches
from parquetry.tasks.engine.retries import RetryCount, may_pass


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """A batch and its run."""

    run: RunOrder
    batch: Batch
    allowance: BatchAllowance | None = None
    """None if the run has no budget"""
    lane: LaneOrder | None = None
    """None if no text waits for a batch at a service"""


@dataclass(frozen=True, slots=True)
class Refused:
    """The cheapest call that the allowance of a batch did not allow."""

    namespace: str
    """one of the model's namespaces"""
    usd: float
    """US dollars, at most"""


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """A report of another process, with what it did since its last one."""

    report: BatchReport
    """without what failed services prevented"""
    lost: tuple[tuple[Key, Lost], ...]
    """documents not processed because a service failed"""
    usage: Mapping[Purpose, Usage] = field(default_factory=dict)
    retries: tuple[RetryCount, ...] = ()
    refused: Refused | None = None
    """None if the allowance sufficed for all texts"""
    is_claimed: bool = False
    """True if the allowance was claimed by the execution that reports"""
    sent: Sent | None = None
    """batches at a service; None without a lane"""


AnyOrder = Annotated[ResultsOrder | BatchOrder, Field(union_mode="left_to_right")]


@cache
def _orders() -> TypeAdapter[AnyOrder]:
    # Made with the first order: most runs have none.
    return TypeAdapter(AnyOrder)


@cache
def _reports() -> TypeAdapter[RemoteReport]:
    return TypeAdapter(RemoteReport)


def check_workers(settings: Settings) -> None:
    """Refuse a store without conditional writes, if workers of other processes would share something by them.

    Raises:
        SettingsError: the message names the keys.
    """
    runner = settings.run.task_runner
    if runner == "threads" or not settings.corpus.single_writer:
        return
    if settings.refresh.budget_usd is not None:
        what, remedy = "a budget (refresh.budget_usd)", "remove the budget"
    elif settings.batch_api.embedding != "never":
        what, remedy = "batch_api.embedding", 'set it to "never"'
    else:
        return
    raise SettingsError(
        f'{what} needs conditional writes where run.task_runner is "{runner}", and corpus.single_writer is set; '
        f'{remedy}, or set task_runner = "threads"'
    )


class BatchOrders:
    """Orders of a run for other processes, and the allowances that go with them. Used from one thread.

    Leaving it as a context manager ends allowances that are still out: what has not begun to spend does not begin.

    Args:
        run: the run in progress.
    """

    def __init__(self, run: DocumentRun) -> None:
        self._run = run
        self._allowances = Allowances(run.lake.layout)
        self._out: dict[int, BatchAllowance] = {}
        """allowances without a report, by number of the batch"""
        self._held: set[Key] = set()
        """documents that the budget holds back"""
        self._begun = False
        """True once there was an allowance"""
        self._waiting = 0
        """number of batches that no order was made for yet"""
        self._concurrency = 1

    def of(self, batches: Sequence[Batch], concurrency: int) -> RemoteBatches[Batch, BatchReport] | None:
        """Return the functions that have batches processed elsewhere; None if the settings do not ask for it.

        Args:
            batches: the batches of the next round.
            concurrency: number of batches in work at a time.
        """
        if self._run.settings.run.task_runner == "threads":
            return None
        self._waiting, self._concurrency = len(batches), concurrency
        return RemoteBatches(self._run.settings, self._order, carry_out, self._receive, self._lost)

    def reported(self, report: BatchReport) -> None:
        """Note which documents of a batch the budget holds back."""
        self._held -= report.awaited.union((row.namespace, row.document_id) for row in report.rows)
        self._held |= report.held

    def held_again(self, batches: Sequence[Batch], reports: Sequence[BatchReport]) -> Sequence[Batch]:
        """Return batches of the documents that were held back while parts of the budget were reserved for others.

        Args:
            batches: all batches of the run.
            reports: reports of all of them.
        """
        if not self._begun or not self._held:
            return ()
        self._run.begin_again()
        again = batches_with(batches, self._held, 1 + max(report.batch for report in reports), in_turn=True)
        return again if any(self._run.affords(self._model(batch)) for batch in again) else ()

    def _order(self, batch: Batch) -> str | None:
        """Return the order of a batch; None for one that the run's own process takes.

        Batches of web sources stay with the run: they keep what was read while listing, and pace their requests. So do
        those that the budget has nothing free for, of which no document is read.
        """
        run = self._run
        parts = max(1, min(self._concurrency, self._waiting))
        self._waiting -= 1
        used = {(change.namespace, change.source) for change in batch.changes}
        scopes = tuple(scope for key, scope in run.scopes.items() if key in used)
        if not all(is_read_anywhere(scope.settings.uri) for scope in scopes) or not run.affords(self._model(batch)):
            return None
        # Workers open the corpus, and a first run has not made it yet.
        run.lake.make()
        models = {namespace: identity_of(run.models[namespace]) for namespace, _ in used}
        lane = lane_order(run, self._model(batch))
        known = RunOrder(run.stamp, run.base.version, scopes, models, run.reuse_vectors, bool(run.leading))
        # The changes of a large plan are read from a file of this process.
        alone = replace(batch, changes=tuple(batch.changes))
        return _orders().dump_json(BatchOrder(known, alone, self._allowance(alone, parts), lane)).decode()

    def _allowance(self, batch: Batch, parts: int) -> BatchAllowance | None:
        """Reserve a part of the budget for a batch; None if there is no budget."""
        run = self._run
        if run.ledger.budget_usd is None:
            return None
        prices = prices_of(batch, run.settings)
        usd = 0.0 if prices.are_nothing else run.ledger.allot(parts, run.needed_usd(self._model(batch)))
        if not usd:
            return BatchAllowance(usd, prices)
        allowance = self._out[batch.number] = BatchAllowance(usd, prices, self._allowances.place())
        self._begun = True
        return allowance

    def _receive(self, answer: str) -> BatchReport:
        remote = _reports().validate_json(answer)
        for purpose, used in remote.usage.items():
            self._run.ledger.note(purpose, used)
        kept = 0.0
        if remote.sent is not None:
            self._run.leading[remote.sent.model].add(remote.sent)
            kept = sum(remote.sent.reserved.values())
        self._end(remote.report.batch, is_reported=remote.is_claimed, kept_usd=kept)
        self._run.retries.add(remote.retries)
        if remote.refused is not None:
            self._run.out_of_budget(self._run.models[remote.refused.namespace], remote.refused.usd)
        return replace(remote.report, lost=dict(remote.lost))

    def _lost(self, batch: Batch) -> None:
        self._end(batch.number, is_reported=False)

    def _end(self, number: int, *, is_reported: bool, kept_usd: float = 0.0) -> None:
        """End the allowance of a batch, and release it, unless an execution claimed it whose usage is in no report.

        Args:
            number: number of the batch.
            is_reported: True if the execution that claimed the allowance has reported.
            kept_usd: US dollars of it that stay reserved for what was sent to a batch API.
        """
        allowance = self._out.pop(number, None)
        if allowance is None:
            return
        is_claimed = self._allowances.end(allowance.name)
        if is_claimed and not is_reported:
            self._run.ledger.write_off(allowance.usd)
        else:
            self._run.ledger.release(allowance.usd - kept_usd)

    def _model(self, batch: Batch) -> Model:
        return self._run.models[batch.changes[0].namespace]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._out):
            # A mark that is left is deleted by a later run.
            with suppress(StorageError):
                self._end(number, is_reported=False)


def carry_out(order: str, settings: Settings, gate: Gate) -> str:
    """Process the batch of an order in this process, and return its report.

    Args:
        order: as `RemoteBatches.order` returns it, also one for the results of a batch at a service.
        settings: settings of the run; their secrets are this process's own where the run's cannot be sent.
        gate: limits on requests to embedding services.

    Raises:
        TransientError: as for `process_batch`, if the batch has no allowance.
        SettingsError: this process has another embedder or other prices, does not see the corpus, or not the folder of
            a source.
        ParquetryError: as for `process_batch`.
    """
    known = _orders().validate_json(order)
    if isinstance(known, ResultsOrder):
        return carry_out_results(known, settings, gate)
    with joined(known.run, settings, gate) as worker:
        worker.find_new_vectors(known.run.models)
        ledger = ledger_of(known.batch, known.allowance, settings, worker.run.lake.layout)
        with worker.paid_by(ledger) as run, _lane(worker, run, known) as lane:
            report = process_batch(known.batch, run) if known.allowance is None else _reported(known.batch, run)
            refused = _refused(known.batch, run)
            if lane is not None:
                lane.send()
            sent = None if lane is None else lane.sent()
        usage, retries = worker.take_counts(ledger)
    lost, is_claimed = tuple(report.lost.items()), isinstance(ledger, AllowanceLedger) and ledger.is_claimed
    answer = RemoteReport(replace(report, lost={}), lost, usage, retries, refused, is_claimed, sent)
    return _reports().dump_json(answer).decode()


def _lane(
    worker: RunWorker, run: DocumentRun, order: BatchOrder
) -> AbstractContextManager[SendingLane[Vectors] | None]:
    """Return what opens the lane of a batch, if it has one."""
    if order.lane is None:
        return nullcontext()
    return worker.lanes.opened(run, run.models[order.batch.changes[0].namespace], order.lane)


def _reported(batch: Batch, run: DocumentRun) -> BatchReport:
    """Return the report of a batch, even of one that failed: another execution could not spend the allowance."""
    try:
        return run.retries.call(
            f"batch {batch.number}", lambda: process_batch(batch, run), attempts=ATTEMPTS, worth=may_pass
        )
    except Exception as error:  # noqa: BLE001 - the edge of a batch: any error fails this batch or stops the run
        return failed_batch(batch, error, run)


def _refused(batch: Batch, run: DocumentRun) -> Refused | None:
    """Return what the allowance of a batch did not suffice for; None if nothing was embedded too much."""
    namespace = batch.changes[0].namespace
    usd = run.ledger.least_refused_usd
    return None if usd is None or run.affords(run.models[namespace]) else Refused(namespace, usd)
