"""The flow `batches`: a worker of a work pool processes one batch of a run that another process leads."""

from __future__ import annotations

from prefect import flow, runtime
from prefect.client.schemas.objects import State
from prefect.states import Completed

from parquetry.errors import ParquetryError, classify
from parquetry.flows.orchestration.flow_run import begin, failed, settings_of_run
from parquetry.flows.orchestration.run_log import tasks_log_to_run
from parquetry.masked_output import masked_errors
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.migrations import brought_up
from parquetry.storage.lake.orders import OrderAnswer, Orders
from parquetry.tasks.documents.remote import carry_out
from parquetry.tasks.engine.gate import PrefectGate


@flow(name="batches", validate_parameters=True, persist_result=False)
def batches(order: str, corpus: str, config: str | None = None) -> State[None]:
    """Process one batch of a refresh; started by the refresh itself.

    Args:
        order: name of the order that the refresh left in the corpus.
        corpus: root of the corpus.
        config: settings file where the flow runs; default parquetry.toml in its working folder.
    """
    begin()
    try:
        with masked_errors(), tasks_log_to_run():
            _carry_out(order, corpus, config)
    except ParquetryError as error:
        return failed(error)
    return Completed(message=f"{runtime.flow_run.name} is processed")


def _carry_out(order: str, corpus: str, config: str | None) -> None:
    orders = Orders(layout_of(corpus))
    content = orders.read(order)
    try:
        settings = brought_up(settings_of_run(config, corpus), quietly=True)
        orders.answer(order, OrderAnswer(report=carry_out(content, settings, PrefectGate())))
    except ParquetryError as error:
        if classify(error).fate == "stop":
            # Another worker would fail for the same reason.
            orders.answer(order, OrderAnswer(stop=str(error)))
        raise
