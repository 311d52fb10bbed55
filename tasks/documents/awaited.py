"""Documents that wait for batches: their lanes, and the rounds in which they are processed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from parquetry.embed.base import Batchable, Embedder
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
    """Open the lanes of a run's embedders, and take what earlier batches brought.

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
            texts = _lane(run, records, model, embedder)
            run.text_lanes[model.id] = texts
            texts.lane.is_on = is_on
            texts.lane.collect()


def _lane(run: DocumentRun, records: BatchRecords, model: Model, embedder: Batchable) -> TextLane:
    settings = run.settings.batch_api

    def stored_in(file: str, text_hashes: Iterable[str]) -> None:
        run.vectors_of(model).stored_in(file, text_hashes)

    user = text_user(model.id, embedder, settings.price_share, run.lake.layout, stored_in)
    lane = BatchLane(user, records, settings, run.ledger, run.stamp.run_id)
    counting: Embedder = model.open()
    return TextLane(lane, embedder, counting.count_tokens, settings.price_share)


def rounds(run: DocumentRun, batches: Sequence[Batch], reports: Sequence[BatchReport]) -> Iterator[Sequence[Batch]]:
    """Yield the batches of a run, then, while it waits, those of documents whose vectors may have come.

    Args:
        run: the run in progress.
        batches: all batches.
        reports: receives the reports of each round before the next is asked for.
    """
    patience = Patience(run.settings.batch_api, run.pause)
    done = 0
    while batches:
        first = batches[0].number + len(batches)
        yield batches
        for lane in run.lanes:
            lane.send()
        awaited = awaited_of(reports[done:])
        done = len(reports)
        if not awaited or not patience.until_they_end(run.lanes):
            return
        batches = batches_with(batches, awaited, first)
