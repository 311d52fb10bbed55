"""Results of the batches that a run sent to services: taken by the processes that process its batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from parquetry.tasks.batches.results import EndedBatch
from parquetry.tasks.documents.remote import carry_out
from parquetry.tasks.documents.result_orders import ResultsOrder, ResultsReport, result_reports
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.documents.worker import RunOrder, identity_of
from parquetry.tasks.documents.worker_lanes import order_of
from parquetry.tasks.engine.base import BatchHandler, Engine, RemoteBatches, verdict_of_failed_batch

if TYPE_CHECKING:
    from parquetry.embed.base import Vectors
    from parquetry.tasks.batches.lane import BatchLane


def collect(run: DocumentRun, engine: Engine) -> bool:
    """Look at the batches of all lanes of a run, and have the results of those that have ended taken.

    Args:
        run: the run in progress, between two rounds of batches.
        engine: engine that runs the batches.

    Returns:
        True if a batch has ended since the last look.

    Raises:
        StorageError: the record or the results cannot be read or stored.
    """
    if run.settings.run.task_runner == "threads":
        changed = [lane.collect() for lane in run.lanes]
        return any(changed)
    found = False
    for model_id, lane in run.leading.items():
        ended = lane.look()
        stored = [each for each in ended if each.remote.output_file or each.remote.error_file]
        problems = {each.number: lane.take(each) for each in ended if each not in stored}
        if stored:
            reports = engine.batches(stored, _handler(run, model_id, lane))
            problems |= {report.results_of: report.problem for report in reports}
        lane.settle(ended, problems)
        found |= lane.has_changed()
    return found


def _handler(run: DocumentRun, model_id: str, lane: BatchLane[Vectors]) -> BatchHandler[EndedBatch, ResultsReport]:
    namespace, model = next((name, model) for name, model in run.models.items() if model.id == model_id)
    known = RunOrder(run.stamp, run.base.version, (), {namespace: identity_of(model)}, run.reuse_vectors, True)
    told, orders = order_of(lane, run, model), TypeAdapter(ResultsOrder)
    # Workers open the corpus, and a first run has not made it yet.
    run.lake.make()

    def order(ended: EndedBatch) -> str:
        return orders.dump_json(ResultsOrder(ended.number, known, told)).decode()

    def failed(ended: EndedBatch, error: Exception) -> ResultsReport:
        return ResultsReport(ended.number, verdict_of_failed_batch(ended.number, error).detail)

    return BatchHandler(
        lambda ended: ResultsReport(ended.number, lane.take(ended)),
        failed,
        run.settings.refresh.workers,
        run,
        RemoteBatches(run.settings, order, carry_out, result_reports().validate_json, lambda _: None),
    )
