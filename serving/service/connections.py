"""Connections of the service: one that sends no request, or takes no answer, is closed."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 30.0
"""seconds for the head of a request to arrive, counted from the connection or from the answer before"""
STALLED_SECONDS = 60.0
"""seconds in which the other end has to take something of an answer that waits"""


class PatientProtocol(H11Protocol):
    """Protocol of one connection, with limits that the server lacks: any number could otherwise be held open for ever.

    The time of a body is limited by `parquetry.serving.http.body_limits`.
    """

    _head: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED_SECONDS, self._look, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_head()
        self._end_stall()

    def _look(self, before: int) -> None:
        """Close the connection if nothing was taken since the last look."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self._stalled = self.loop.call_later(STALLED_SECONDS, self._look, left)

    def _watch(self) -> None:
        """Give the head of the next request its time, as long as none is in work."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_head()
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _end_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _end_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
