"""Batches of a refresh that other processes and machines process: what goes to them, and what comes back.

An order names the documents of a batch and the run; the report has counts, rows of `documents` and names of shards.
Documents, texts and vectors are read and written by the worker alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from parquetry.embed.base import Gate
from parquetry.errors import SettingsError
from parquetry.llm.spending import Purpose, Usage
from parquetry.planning.batches import Batch
from parquetry.planning.outage import Key, Lost
from parquetry.settings.sections import Settings
from parquetry.sources.providers import is_read_anywhere
from parquetry.tasks.documents.batch import BatchReport, process_batch
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.documents.worker import RunOrder, identity_of, joined
from parquetry.tasks.engine.base import RemoteBatches
from parquetry.tasks.engine.retries import RetryCount


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """A batch and its run."""

    run: RunOrder
    batch: Batch


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """A report of another process, with what it did since its last one."""

    report: BatchReport
    """without what failed services prevented"""
    lost: tuple[tuple[Key, Lost], ...]
    """documents not processed because a service failed"""
    usage: Mapping[Purpose, Usage] = field(default_factory=dict)
    retries: tuple[RetryCount, ...] = ()


_ORDERS = TypeAdapter(BatchOrder)
_REPORTS = TypeAdapter(RemoteReport)


def check_workers(settings: Settings) -> None:
    """Refuse what only the memory of one process can enforce, if batches are processed by several.

    Raises:
        SettingsError: the message names the keys.
    """
    runner = settings.run.task_runner
    if runner == "threads":
        return
    if settings.refresh.budget_usd is not None:
        raise SettingsError(
            f'a budget (refresh.budget_usd) is enforced by one process, and run.task_runner is "{runner}"; remove the '
            'budget, or set task_runner = "threads"'
        )
    if settings.batch_api.embedding != "never":
        raise SettingsError(
            f'batch_api.embedding is "{settings.batch_api.embedding}", which takes one process, and run.task_runner is '
            f'"{runner}"; set it to "never", or set task_runner = "threads"'
        )


def remote_batches(run: DocumentRun) -> RemoteBatches[Batch, BatchReport] | None:
    """Return the functions that have batches of a refresh processed elsewhere; None if the settings do not ask for it.

    Batches of web sources stay with the run: they keep what was read while listing, and pace their requests.
    """
    if run.settings.run.task_runner == "threads":
        return None

    def order(batch: Batch) -> str | None:
        used = {(change.namespace, change.source) for change in batch.changes}
        scopes = tuple(scope for key, scope in run.scopes.items() if key in used)
        if not all(is_read_anywhere(scope.settings.uri) for scope in scopes):
            return None
        # Workers open the corpus, and a first run has not made it yet.
        run.lake.make()
        models = {namespace: identity_of(run.models[namespace]) for namespace, _ in used}
        known = RunOrder(run.stamp, run.base.version, scopes, models, run.reuse_vectors)
        # The changes of a large plan are read from a file of this process.
        return _ORDERS.dump_json(BatchOrder(known, replace(batch, changes=tuple(batch.changes)))).decode()

    def receive(answer: str) -> BatchReport:
        remote = _REPORTS.validate_json(answer)
        for purpose, used in remote.usage.items():
            run.ledger.note(purpose, used)
        run.retries.add(remote.retries)
        return replace(remote.report, lost=dict(remote.lost))

    return RemoteBatches(run.settings, order, carry_out, receive)


def carry_out(order: str, settings: Settings, gate: Gate) -> str:
    """Process the batch of an order in this process, and return its report.

    Args:
        order: as `RemoteBatches.order` returns it.
        settings: settings of the run; their secrets are this process's own where the run's cannot be sent.
        gate: limits on requests to embedding services.

    Raises:
        TransientError: as for `process_batch`.
        SettingsError: this process has another embedder, does not see the corpus, or not the folder of a source.
        ParquetryError: as for `process_batch`.
    """
    known = _ORDERS.validate_json(order)
    with joined(known.run, settings, gate) as worker:
        worker.find_new_vectors(known.run.models)
        report = process_batch(known.batch, worker.run)
        usage, retries = worker.take_counts()
    answer = RemoteReport(replace(report, lost={}), tuple(report.lost.items()), usage, retries)
    return _REPORTS.dump_json(answer).decode()
