"""Limits on the time and bytes of one exchange with a server, so that repeated short stalls cannot add up to hours."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from parquetry.errors import TransientError


class Budget:
    """Time and bytes of one exchange.

    Args:
        seconds: time until the deadline.
        wire_bytes: maximum bytes received.
        what: the URL, for messages.
        too_large: returns the error for more bytes.
    """

    def __init__(self, seconds: float, wire_bytes: int, what: str, too_large: Callable[[], Exception]) -> None:
        self._seconds, self._what, self._too_large = seconds, what, too_large
        self._deadline = time.monotonic() + seconds
        self._bytes_left = wire_bytes

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time spent in the `with` block."""
        started = time.monotonic()
        yield
        self._deadline += time.monotonic() - started

    def seconds(self, most: float | None) -> float:
        """Return the seconds left, or `most` if that is less.

        Raises:
            TransientError: `timeout`, no time is left.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TransientError("timeout", f"{self._what} took longer than {self._seconds:g} s (timeout_seconds)")
        return left if most is None else min(left, most)

    def spend(self, count: int) -> None:
        """Count received bytes."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise self._too_large()


class BudgetedStream:
    """Connection of httpcore, sync or secured, with every operation limited by a budget.

    Args:
        stream: the connection.
        budget: returns the budget of the current exchange.
    """

    def __init__(self, stream: Any, budget: Callable[[], Budget]) -> None:
        self._stream, self._budget = stream, budget

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        budget = self._budget()
        received: bytes = self._stream.read(max_bytes, budget.seconds(timeout))
        budget.spend(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._budget().seconds(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> BudgetedStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, self._budget().seconds(timeout))
        return BudgetedStream(secured, self._budget)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
