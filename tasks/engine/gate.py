"""Limits on requests to embedding services that hold for all processes and machines: Prefect's own limits."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from httpx import HTTPError
from prefect.client.orchestration import get_client
from prefect.concurrency.sync import concurrency, rate_limit
from prefect.exceptions import ObjectNotFound

from parquetry.errors import TransientError, first_line
from parquetry.net.rate_limiter import host_of

LEASE_SECONDS = 60
"""seconds; the shortest lease the server accepts, and so the wait for the permit of a process that died"""


def limit_of_embedding(url: str) -> str:
    """Return the name of the global concurrency limit for requests to an embedding service.

    Args:
        url: address of the service, with or without a path.

    Returns:
        `parquetry-embed-{host}`, with `-` before a port: `parquetry-embed-api.openai.com`.
    """
    return "parquetry-embed-" + re.sub(r"[^\w.-]+", "-", host_of(url).partition("://")[2])


class PrefectGate:
    """Permits from the global concurrency limit of a host, if an operator has made one.

    A limit with slot decay limits the rate of requests, another one those in work at a time. Limits are looked up once
    per run and process, so that a host without one costs a run nothing more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._decays: dict[str, bool | None] = {}
        """name of a limit -> True if its slots decay; None if there is no such limit"""

    @contextmanager
    def __call__(self, host: str) -> Iterator[None]:
        """Hold a permit for one request to a host.

        Raises:
            TransientError: Prefect's API cannot be asked.
        """
        name = limit_of_embedding(host)
        try:
            decays = self._is_decaying(name)
            if decays is None:
                permit = None
            elif decays:
                rate_limit(name, strict=True)
                permit = None
            else:
                permit = concurrency(
                    name, lease_duration=LEASE_SECONDS, strict=True, raise_on_lease_renewal_failure=False
                )
                permit.__enter__()
        except (HTTPError, OSError) as error:
            detail = f"the limit {name} cannot be asked for: {first_line(error)}"
            raise TransientError("unreachable", detail) from error
        try:
            yield
        finally:
            if permit is not None:
                permit.__exit__(None, None, None)

    def _is_decaying(self, name: str) -> bool | None:
        with self._lock:
            if name not in self._decays:
                with get_client(sync_client=True) as client:
                    try:
                        found = client.read_global_concurrency_limit_by_name(name)
                        self._decays[name] = found.slot_decay_per_second > 0
                    except ObjectNotFound:
                        self._decays[name] = None
            return self._decays[name]
