"""Orders to take the results of batches at services.

Results go from the service into shards, and what they cost into the record of the batch; the report has none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter

from parquetry.embed.base import Gate
from parquetry.settings.sections import Settings
from parquetry.tasks.documents.worker import RunOrder, joined
from parquetry.tasks.documents.worker_lanes import LaneOrder


@dataclass(frozen=True, slots=True)
class ResultsOrder:
    """A batch whose results are to be taken, and its run."""

    results_of: int
    """number of the batch"""
    run: RunOrder
    """names one namespace of the batch's model"""
    lane: LaneOrder


@dataclass(frozen=True, slots=True)
class ResultsReport:
    """The outcome of an order."""

    results_of: int
    """number of the batch"""
    problem: str | None
    """why its results cannot be read now; None if they are stored"""


@cache
def result_reports() -> TypeAdapter[ResultsReport]:
    """Return what reads reports and writes them."""
    return TypeAdapter(ResultsReport)


def carry_out_results(order: ResultsOrder, settings: Settings, gate: Gate) -> str:
    """Take the results of a batch in this process, and return the report.

    Raises:
        SettingsError: this process has another embedder or another price, or does not see the corpus.
        StorageError: the results cannot be stored.
    """
    with joined(order.run, settings, gate) as worker:
        (model,) = (worker.run.models[namespace] for namespace in order.run.models)
        problem = worker.lanes.take(model, order.lane, order.results_of)
    return result_reports().dump_json(ResultsReport(order.results_of, problem)).decode()
