"""Workers of a Prefect work pool: a flow run for each batch, which shares only the corpus with its run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from time import sleep
from uuid import UUID

from httpx import HTTPError
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelling

from parquetry.errors import SettingsError, WorkerLost, first_line
from parquetry.masked_output import masked_errors
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.orders import Orders
from parquetry.tasks.engine.task_retries import batch_task

log = logging.getLogger("parquetry")
POLL_SECONDS = 2.0
"""seconds between two looks at a flow run"""


@batch_task
def pool_batch(number: int, order: str, root: str, deployment: str, check_cancelled: Callable[[], None]) -> str:
    """Have a worker of the pool process a batch, and return its report.

    Args:
        number: number of the batch.
        order: what the worker needs to know.
        root: root of the corpus, where the order and the report are left.
        deployment: deployment of the flow `batches`.
        check_cancelled: raises if the run was cancelled.

    Raises:
        WorkerLost: the flow run ended without a report, or could not be started.
        SettingsError: there is no such deployment, or the worker cannot process batches of this run.
    """
    orders = Orders(layout_of(root))
    with masked_errors(), get_client(sync_client=True) as client:
        name = orders.place(order)
        try:
            run = _start(client, deployment, f"batch-{number}", name, root)
            ended = _end_of(client, run.id, check_cancelled)
            answer = orders.answer_to(name)
        finally:
            orders.delete(name)
    if answer is not None and answer.stop is not None:
        raise SettingsError(f"a worker of {deployment} stopped: {answer.stop}")
    if answer is None or answer.report is None:
        state = ended.state
        how = f"{state.name}: {state.message}" if state is not None else "without a state"
        raise WorkerLost("worker-lost", f"flow run {ended.name} of {deployment} ended without a report ({how})")
    return answer.report


def _start(client: SyncPrefectClient, deployment: str, name: str, order: str, root: str) -> FlowRun:
    """Start the flow run of an order: one, however often Prefect's client asks for it until it hears of it."""
    try:
        found = client.read_deployment_by_name(deployment)
        return client.create_flow_run_from_deployment(
            found.id, parameters={"order": order, "corpus": root}, name=name, idempotency_key=order
        )
    except ObjectNotFound as error:
        raise SettingsError(
            f"run.deployment {deployment!r} is not on the Prefect server; `prefect deploy --all --prefect-file "
            "deployments/prefect.yaml` makes it"
        ) from error
    except HTTPError as error:
        raise WorkerLost("worker-lost", f"no flow run of {deployment} could be started: {first_line(error)}") from error


def _end_of(client: SyncPrefectClient, run_id: UUID, check_cancelled: Callable[[], None]) -> FlowRun:
    """Wait for the end of a flow run; cancel it if the run is cancelled meanwhile."""
    with ExitStack() as unfinished:
        unfinished.callback(_cancel, client, run_id)
        while True:
            run = _looked_up(client, run_id)
            if run is not None and run.state is not None and run.state.is_final():
                unfinished.pop_all()
                return run
            check_cancelled()
            sleep(POLL_SECONDS)


def _cancel(client: SyncPrefectClient, run_id: UUID) -> None:
    with suppress(HTTPError):
        client.set_flow_run_state(run_id, Cancelling())


def _looked_up(client: SyncPrefectClient, run_id: UUID) -> FlowRun | None:
    """Return a flow run; None if the API does not answer, while the worker may well be at work."""
    try:
        return client.read_flow_run(run_id)
    except HTTPError as error:
        log.warning("flow run %s is not known at the moment: %s", run_id, first_line(error))
        return None
