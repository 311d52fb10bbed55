"""The batches of a refresh in rounds. Imported by runs that have documents to read; most have none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from parquetry.planning.batches import Batch
from parquetry.planning.estimate import Estimate
from parquetry.tasks.documents.awaited import open_text_lanes, rounds
from parquetry.tasks.documents.batch import document_batches
from parquetry.tasks.documents.batch_report import BatchReport
from parquetry.tasks.documents.remote import BatchOrders
from parquetry.tasks.documents.remote_results import collect
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.engine.base import BatchHandler, Engine


def processed(
    run: DocumentRun,
    batches: Sequence[Batch],
    reports: Sequence[BatchReport],
    engine: Engine,
    estimate: Estimate | None,
) -> Iterator[BatchReport]:
    """Process batches, some documents again: those that waited for vectors, or for reserved parts of the budget.

    Args:
        run: the run in progress.
        batches: all batches.
        reports: receives the reports of each round before the next is asked for.
        engine: engine that runs the batches.
        estimate: of the plan, for texts that may wait for a batch of a service; None if none may.
    """
    if estimate is not None:
        open_text_lanes(run, estimate)
    handler, take = document_batches(run), partial(collect, run, engine)
    take()
    with BatchOrders(run) as orders:
        for some in rounds(run, batches, reports, take):
            yield from _round(run, some, engine, replace(handler, remote=orders.of(some, handler.concurrency)), orders)
            again = orders.held_again(batches, reports)
            if again:
                in_turn = replace(handler, remote=orders.of(again, 1), concurrency=1)
                yield from _round(run, again, engine, in_turn, orders)


def _round(
    run: DocumentRun,
    batches: Sequence[Batch],
    engine: Engine,
    handler: BatchHandler[Batch, BatchReport],
    orders: BatchOrders,
) -> Iterator[BatchReport]:
    by_number = {batch.number: batch for batch in batches}
    for report in engine.batches(batches, handler):
        orders.reported(report)
        # Documents of a failed batch, or beyond the budget, may not have been read at all.
        for change in by_number[report.batch].changes:
            run.reading.read(change)
        yield report
