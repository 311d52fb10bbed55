"""Connections to the services that embed texts and answer questions: no reply lasts or grows without end."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument, SkippedDocument, TransientError
from parquetry.net.budget import Budget, BudgetedStream
from parquetry.net.inflate import inflate

if TYPE_CHECKING:
    import httpx2

MAX_REPLY_BYTES = 32 * 1024 * 1024
"""of one reply. A batch of 256 vectors of 4,096 dimensions, written as decimals, has 23 MB."""

_budget: ContextVar[Budget] = ContextVar("budget")


@functools.cache
def connections() -> httpx2.Client:
    """One pool of connections for all clients: setting one up takes longer than most calls."""
    import openai

    class Client(openai.DefaultHttpxClient):
        """Gives each request its timeout as a whole, and not for each silence."""

        def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            # It holds until this thread sends the next one: a reply may be read later.
            _budget.set(_budget_of(request))
            return super().send(request, **options)

    made = Client(headers={"Accept-Encoding": "gzip"}, event_hooks={"response": [_unpack]})
    for transport in (made._transport, *made._mounts.values()):
        if transport is not None:
            pool: Any = transport._pool  # type: ignore[attr-defined]
            pool._network_backend = _Backend(pool._network_backend)
    atexit.register(made.close)
    return made


def _budget_of(request: httpx2.Request) -> Budget:
    what = str(request.url)
    return Budget(request.extensions["timeout"]["read"], MAX_REPLY_BYTES, what, lambda: _too_large(what))


def _too_large(what: str) -> TransientError:
    return TransientError("bad-reply", f"{what} replied with more than {MAX_REPLY_BYTES >> 20} MiB")


def _unpack(response: httpx2.Response) -> None:
    """Have a packed reply unpacked no further than the limit, which the client would not do."""
    import httpx2

    class Unpacked(httpx2.SyncByteStream):
        def __init__(self, stream: Any, what: str) -> None:
            self._stream, self._what = stream, what

        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from inflate(self._stream, MAX_REPLY_BYTES, self._what)
            except SkippedDocument as error:
                raise _too_large(self._what) from error
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
    """Makes the connections of a pool, as the pool would."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def connect_tcp(self, *arguments: Any, **options: Any) -> BudgetedStream:
        return BudgetedStream(self._backend.connect_tcp(*arguments, **options), _budget.get)

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> BudgetedStream:
        return BudgetedStream(self._backend.connect_unix_socket(*arguments, **options), _budget.get)

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)
