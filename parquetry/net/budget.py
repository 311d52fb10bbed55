"""Time and bytes that one exchange with a server may take, whatever the server does: no silence adds up to hours."""

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
        seconds: from now to its end.
        wire_bytes: that may arrive.
        what: the URL, for messages.
        too_large: makes the error for more bytes.
    """

    def __init__(self, seconds: float, wire_bytes: int, what: str, too_large: Callable[[], Exception]) -> None:
        self._seconds, self._what, self._too_large = seconds, what, too_large
        self._deadline = time.monotonic() + seconds
        self._bytes_left = wire_bytes

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time that does not count."""
        started = time.monotonic()
        yield
        self._deadline += time.monotonic() - started

    def seconds(self, most: float | None) -> float:
        """Seconds that are left, or `most` if that is less.

        Raises:
            TransientError: `timeout`, none is.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TransientError("timeout", f"{self._what} took longer than {self._seconds:g} s (timeout_seconds)")
        return left if most is None else min(left, most)

    def spend(self, count: int) -> None:
        """Count bytes that arrived."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise self._too_large()


class BudgetedStream:
    """A connection of httpcore, of either generation, on which nothing goes on longer or brings more than a budget.

    Args:
        stream: the connection.
        budget: that of the exchange which is under way.
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
