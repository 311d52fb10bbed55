"""Limit of one run at a time per namespace, for all deployments and programs.

This avoids duplicate work and is not needed for correctness: storage serialises the publishes of a namespace. If a
server rejects concurrency limits, the run logs a line and continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from httpx import HTTPError, HTTPStatusError
from prefect import get_run_logger
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.client.schemas.objects import ConcurrencyLeaseHolder
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.concurrency.sync import concurrency
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

from parquetry.ids import settings_hash

LEASE_SECONDS = 60
"""seconds; the shortest lease the server accepts, and so the wait after a killed run"""
_LOCKED = 423


def limit_name(root: str, namespace: str, work: str = "") -> str:
    """Return the name of a namespace's global concurrency limit.

    Args:
        root: absolute folder or URL of the corpus.
        namespace: namespace of the corpus.
        work: kind of work, which excludes only runs of its kind; empty for documents.

    Returns:
        `parquetry-{corpus folder}-{namespace}-{hash of the root}`, in the characters that Prefect allows.
    """
    folder = re.sub(r"[^\w.-]+", "-", root.rstrip("/").rpartition("/")[2]) or "corpus"
    return f"parquetry-{folder}-{namespace}-{settings_hash({'root': root, **({'work': work} if work else {})})}"


@contextmanager
def one_run_at_a_time(root: str, namespaces: Iterable[str], work: str = "") -> Iterator[None]:
    """Hold the namespaces of a corpus; wait while another flow run holds any of them.

    Args:
        root: absolute folder or URL of the corpus.
        namespaces: namespaces to hold, acquired at once to prevent deadlocks.
        work: as in `limit_name`.
    """
    names = sorted({limit_name(root, namespace, work) for namespace in namespaces})
    with ExitStack() as held:
        try:
            _create(names)
            _take(names, held)
        except (HTTPError, ConcurrencySlotAcquisitionError) as error:
            get_run_logger().warning("other runs are not kept from %s: %s", ", ".join(names), error)
        yield


def _take(names: list[str], held: ExitStack) -> None:
    try:
        held.enter_context(_slots(names, max_retries=0))
    except ConcurrencySlotAcquisitionError as error:
        cause = error.__cause__
        if not (isinstance(cause, HTTPStatusError) and cause.response.status_code == _LOCKED):
            raise
        get_run_logger().info("waiting for the run that holds %s", " or ".join(names))
        held.enter_context(_slots(names, max_retries=None))


@contextmanager
def _slots(names: list[str], max_retries: int | None) -> Iterator[None]:
    context = FlowRunContext.get()
    holder = None
    if context is not None and context.flow_run is not None:
        holder = ConcurrencyLeaseHolder(type="flow_run", id=context.flow_run.id)
    with concurrency(
        names,
        max_retries=max_retries,
        lease_duration=LEASE_SECONDS,
        strict=True,
        holder=holder,
        raise_on_lease_renewal_failure=False,
    ):
        yield


def _create(names: Iterable[str]) -> None:
    """Create missing limits; leave alone those that an operator raised or disabled."""
    with get_client(sync_client=True) as client:
        for name in names:
            try:
                client.read_global_concurrency_limit_by_name(name)
            except ObjectNotFound:
                try:
                    client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=1))
                except ObjectAlreadyExists:
                    continue
