"""Documents that wait for batches: their lanes, and the rounds in which they are processed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from parquetry.embed.base import Batchable, Embedder, Vectors
from parquetry.embed.registry import calls_service
from parquetry.planning.batches import Batch, batches_with
from parquetry.planning.estimate import Estimate
from parquetry.storage.lake.batches import BatchRecords
from parquetry.tasks.batches.lane import BatchLane
from parquetry.tasks.batches.texts import TextLane, text_user
from parquetry.tasks.batches.waiting import Patience
from parquetry.tasks.documents.batch_report import BatchReport, awaited_of
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.run import DocumentRun


def open_text_lanes(run: DocumentRun, estimate: Estimate) -> None:
    """Open the lanes of a run's embedders, in the process that leads it.

    Nothing is opened where nothing is sent as a batch or on its way.

    Args:
        run: a run that reuses stored vectors, before it looks for any.
        estimate: of its plan.
    """
    records = BatchRecords(run.lake.layout)
    is_recorded = records.last() > 0
    for namespace, model in run.models.items():
        name = run.settings.embedder_of(namespace)
        if model.id in run.text_lanes or not calls_service(name):
            continue
        is_on = name in estimate.batched
        embedder = model.open() if is_on or is_recorded else None
        if isinstance(embedder, Batchable):
            lane = _lane(run, records, model, embedder)
            lane.is_on = is_on
            counting: Embedder = model.open()
            share = run.settings.batch_api.price_share
            run.leading[model.id] = lane
            run.text_lanes[model.id] = TextLane(lane, embedder, counting.count_tokens, share)


def _lane(run: DocumentRun, records: BatchRecords, model: Model, embedder: Batchable) -> BatchLane[Vectors]:
    settings, written = run.settings.batch_api, set[str]()

    def stored_in(file: str, text_hashes: Iterable[str]) -> None:
        written.add(file)
        run.vectors_of(model).stored_in(file, text_hashes)

    def find_in(shards: Iterable[str]) -> None:
        run.find_in([shard for shard in shards if shard not in written])

    user = text_user(model.id, embedder, settings.price_share, run.lake.layout, stored_in, find_in)
    return BatchLane(user, records, settings, run.ledger, run.stamp.run_id)


def rounds(
    run: DocumentRun, batches: Sequence[Batch], reports: Sequence[BatchReport], collect: Callable[[], bool]
) -> Iterator[Sequence[Batch]]:
    """Yield the batches of a run, then, while it waits, those of documents whose vectors may have come.

    Args:
        run: the run in progress.
        batches: all batches.
        reports: receives the reports of each round before the next is asked for.
        collect: looks at the batches at services, and has the results of those that ended taken; True if there are any.
    """
    patience = Patience(run.settings.batch_api, run.pause)
    some, done = batches, 0
    while some:
        yield some
        for lane in run.lanes:
            lane.send()
            # Workers have sent batches of their own.
            lane.read_record()
        awaited = awaited_of(reports[done:])
        done = len(reports)
        if not awaited or not patience.until_they_end(run.lanes, collect):
            return
        first = 1 + max(report.batch for report in reports)
        found = batches_with(some, awaited, first)
        # Documents that the budget held back before are in none of those.
        is_all = sum(len(batch.changes) for batch in found) == len(awaited)
        some = found if is_all else batches_with(batches, awaited, first)
