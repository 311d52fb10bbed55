"""HTTP connections to embedding and chat services, with a bound on the duration and size of each reply."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from parquetry.decompress import inflate
from parquetry.errors import BrokenDocument, SkippedDocument, TransientError
from parquetry.net.budget import Budget, BudgetedStream

if TYPE_CHECKING:
    import httpx2

MAX_REPLY_BYTES = 32 * 1024 * 1024
"""maximum bytes of one reply. A batch of 256 vectors of 4,096 dimensions, written as decimals, has 23 MB."""

_budget: ContextVar[Budget] = ContextVar("budget")
_most: ContextVar[int | None] = ContextVar("most", default=None)
"""maximum bytes of the replies to this thread's requests; None for MAX_REPLY_BYTES"""


@contextmanager
def replies_up_to(most_bytes: int) -> Iterator[None]:
    """Allow the replies to this thread's requests in the block so many bytes."""
    before = _most.set(most_bytes)
    try:
        yield
    finally:
        _most.reset(before)


@functools.cache
def connections() -> httpx2.Client:
    """Return the connection pool that all clients share: setting one up takes longer than most calls."""
    import openai

    class Client(openai.DefaultHttpxClient):
        """HTTP client that applies the timeout to the request as a whole, not to each read."""

        def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            # Valid until this thread sends the next request: a reply may be read later.
            _budget.set(_budget_of(request))
            return super().send(request, **options)

    # A redirect would hand texts of the corpus to a server that the settings do not name.
    made = Client(headers={"Accept-Encoding": "gzip"}, event_hooks={"response": [_unpack]}, follow_redirects=False)
    for transport in (made._transport, *made._mounts.values()):
        if transport is not None:
            pool: Any = transport._pool  # type: ignore[attr-defined]
            pool._network_backend = _Backend(pool._network_backend)
    atexit.register(made.close)
    return made


def _budget_of(request: httpx2.Request) -> Budget:
    what = str(request.url)
    most = _most_bytes()
    return Budget(request.extensions["timeout"]["read"], most, what, lambda: _too_large(what, most))


def _most_bytes() -> int:
    return _most.get() or MAX_REPLY_BYTES


def _too_large(what: str, most: int) -> TransientError:
    return TransientError("bad-reply", f"{what} replied with more than {most >> 20} MiB")


def _unpack(response: httpx2.Response) -> None:
    """Limit the decompression of a compressed reply, which the client would not do."""
    import httpx2

    class Unpacked(httpx2.SyncByteStream):
        def __init__(self, stream: Any, what: str) -> None:
            self._stream, self._what, self._most = stream, what, _most_bytes()

        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from inflate(self._stream, self._most, self._what)
            except SkippedDocument as error:
                raise _too_large(self._what, self._most) from error
            except BrokenDocument as error:
                raise TransientError("bad-reply", error.detail) from error

        def close(self) -> None:
            self._stream.close()

    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding == "gzip":
        del response.headers["content-encoding"]
        response.stream = Unpacked(response.stream, str(response.url))
    elif encoding != "identity":
        raise TransientError("bad-reply", f"{response.url} replied in {encoding}, which it was not asked for")


class _Backend:
    """Open the connections of a pool, as the pool would."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def connect_tcp(self, *arguments: Any, **options: Any) -> BudgetedStream:
        return BudgetedStream(self._backend.connect_tcp(*arguments, **options), _budget.get)

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> BudgetedStream:
        return BudgetedStream(self._backend.connect_unix_socket(*arguments, **options), _budget.get)

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)
