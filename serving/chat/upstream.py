"""The model service behind the chat proxy: whole answers, streams of events, and requests passed on as they are.

Nothing is decided about content here. Requests go to the configured address alone, redirects are not followed, and only
the named headers leave.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from parquetry.plural import size_of
from parquetry.serving.chat.event_stream import EventBuffer, ServerEvent
from parquetry.serving.chat.failures import UpstreamFailed, refusal
from parquetry.settings.chat import UpstreamSettings

log = logging.getLogger("parquetry")
CHAT = "chat/completions"
_KEEP_ALIVE_SECONDS = 4.0
"""shorter than most servers keep an idle connection, so that no request meets one that is being closed"""
_DRAIN_SECONDS = 0.05
"""seconds for the end of a body after the last event of its stream"""
_MOST_TOOLLESS = 1000
"""models that are remembered to take no tools"""
_ERROR_BYTES = 64 * 1024
"""bytes of an error that are read"""
_MOST_HEADER = 64 * 1024

Content = bytes | AsyncIterator[bytes] | None


@dataclass(frozen=True, slots=True)
class Sender:
    """Key and headers with which a request goes to the model service."""

    key: str | None = field(repr=False)
    """bearer; None for none"""
    is_own: bool
    """True for the key of this service, False for one that the caller brought"""
    headers: tuple[tuple[str, str], ...] = ()
    """headers of the caller that are passed on; names in lower case"""


class UpstreamAnswer:
    """An answer with its headers received and its body still unread. Closed unread, it ends the request upstream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return self._response.raw_headers

    @property
    def content_type(self) -> str:
        """Media type in lower case, without parameters."""
        return str(self._response.headers.get("Content-Type", "")).partition(";")[0].strip().lower()

    async def blocks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            UpstreamFailed: it stops before its end.
        """
        with _translated():
            async for block in self._response.content.iter_any():
                yield block

    async def read(self, most: int) -> bytes:
        """Return the whole body.

        Raises:
            UpstreamFailed: it stops before its end, or has more bytes than `most`.
        """
        found = bytearray()
        async for block in self.blocks():
            found += block
            if len(found) > most:
                raise UpstreamFailed(
                    "upstream-broken", f"the answer of the model service is larger than {size_of(most)}"
                )
        return bytes(found)

    async def batches(self) -> AsyncIterator[list[ServerEvent]]:
        """Yield the events of a stream, together as they arrive, to the last one or the end of the body.

        Raises:
            UpstreamFailed: the stream breaks off, stalls, or has an event that is too large.
        """
        buffer = EventBuffer()
        with _translated():
            # Not `blocks`: a generator in a generator costs as much as reading an event does.
            while block := await self._response.content.readany():
                events = list(buffer.feed(block))
                last = next((place for place, event in enumerate(events, 1) if event.is_done), None)
                if events:
                    yield events[:last]
                if last is not None:
                    return
        rest = buffer.rest()
        if rest is not None:
            yield [rest]

    async def events(self) -> AsyncIterator[ServerEvent]:
        """Yield the events of a stream one by one, as `batches` does."""
        async for events in self.batches():
            for event in events:
                yield event

    async def drain(self) -> None:
        """Read what may follow the last event, so that the connection can be used again; ends the request if not."""
        with suppress(UpstreamFailed, TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self.blocks():
                    pass
        self.close()

    def close(self) -> None:
        """End the request, also in the middle of its answer."""
        self._response.close()

    async def refused(self, sender: Sender) -> UpstreamFailed:
        """Return the failure that an answer with an error stands for."""
        content = bytearray()
        try:
            async for block in self.blocks():
                content += block
                if len(content) >= _ERROR_BYTES:
                    break
        except UpstreamFailed:
            # What arrived of it says enough.
            pass
        finally:
            self.close()
        again = self._response.headers.get("Retry-After")
        return refusal(self.status, bytes(content[:_ERROR_BYTES]), own_key=sender.is_own, retry_after=again)


class Upstream:
    """The model service. Belongs to one event loop, in which it is opened and closed.

    Args:
        settings: `[upstream]`.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        self._settings = settings
        self.own_key = settings.key
        """key of this service itself; None if it needs none"""
        self._session: aiohttp.ClientSession | None = None
        self._toolless: dict[str, None] = {}

    def takes_no_tools(self, model: str) -> None:
        """Remember that a model takes no tools."""
        self._toolless[model] = None
        if len(self._toolless) > _MOST_TOOLLESS:
            del self._toolless[next(iter(self._toolless))]

    def is_toolless(self, model: str) -> bool:
        """Return True if a model is known to take no tools."""
        return model in self._toolless

    @property
    def is_configured(self) -> bool:
        return self._settings.base_url is not None

    @property
    def max_answer_bytes(self) -> int:
        """Bytes of an answer that may be kept in memory."""
        return self._settings.max_answer_bytes

    @property
    def address(self) -> str | None:
        """Address of the model service, as the settings name it; it holds no key."""
        return self._settings.base_url

    async def open(self) -> None:
        """Open the connections' pool."""
        settings = self._settings
        if settings.base_url is not None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=settings.max_connections, keepalive_timeout=_KEEP_ALIVE_SECONDS, ttl_dns_cache=60
                ),
                # What one answer sets as a cookie must not go along with the next request, of another caller.
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=settings.connect_seconds, sock_read=settings.silence_seconds
                ),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                max_line_size=_MOST_HEADER,
                max_field_size=_MOST_HEADER,
            )

    async def close(self) -> None:
        """End all requests."""
        if self._session is not None:
            await self._session.close()

    async def complete(self, body: Mapping[str, Any], sender: Sender, path: str = CHAT) -> dict[str, Any]:
        """Return a whole answer.

        Args:
            body: request in OpenAI's form.
            sender: key and headers.
            path: path below the base URL.

        Raises:
            UpstreamFailed: the model service failed, or refused the request.
        """
        answer = await self._posted(body, sender, path, "application/json")
        try:
            content = await answer.read(self._settings.max_answer_bytes)
        finally:
            answer.close()
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise UpstreamFailed("upstream-broken", "the model service sent an answer that is no JSON object")
        if isinstance(value.get("error"), dict | str):
            raise refusal(502, content, own_key=sender.is_own)
        return value

    async def stream(self, body: Mapping[str, Any], sender: Sender, path: str = CHAT) -> UpstreamAnswer:
        """Return an answer that comes as events (`events`); its user closes it.

        Args:
            body: as for `complete`, with `stream` set.
            sender: as for `complete`.
            path: as for `complete`.

        Raises:
            UpstreamFailed: the model service failed, or refused the request, before it began to answer.
        """
        answer = await self._posted(body, sender, path, "text/event-stream")
        if answer.content_type != "text/event-stream":
            answer.close()
            raise UpstreamFailed(
                "upstream-broken", f"the model service answers a stream with {answer.content_type[:80] or 'no type'!r}"
            )
        return answer

    async def _posted(self, body: Mapping[str, Any], sender: Sender, path: str, accept: str) -> UpstreamAnswer:
        headers = {"content-type": "application/json", "accept": accept, "accept-encoding": "identity"}
        content = json.dumps(body, separators=(",", ":")).encode("ascii")
        answer = await self.send("POST", path, sender, headers=headers, content=content)
        if answer.status != 200:
            raise await answer.refused(sender)
        return answer

    async def send(
        self,
        method: str,
        path: str,
        sender: Sender,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        content: Content = None,
    ) -> UpstreamAnswer:
        """Send a request; return its answer, whatever its status, with the body unread. Its user closes it.

        Args:
            method: HTTP method.
            path: path below the base URL, percent-encoded, without `.` and `..`.
            sender: key and headers.
            query: query string, percent-encoded.
            headers: headers beside those of the sender, which they replace; names in lower case.
            content: the body; one that comes in blocks is sent once, whatever happens.

        Raises:
            UpstreamFailed: the model service cannot be reached, or does not answer.
        """
        if self._session is None:
            raise no_upstream()
        url = URL(f"{self._settings.base_url}/{path}" + (f"?{query}" if query else ""), encoded=True)
        own = headers or {}
        sent = [*(each for each in sender.headers if each[0] not in own), *own.items()]
        if sender.key is not None:
            sent.append(("Authorization", f"Bearer {sender.key}"))
        tries = self._settings.attempts if content is None or isinstance(content, bytes) else 1
        with _translated():
            for left in reversed(range(tries)):
                try:
                    return UpstreamAnswer(
                        await self._session.request(method, url, headers=sent, data=content, allow_redirects=False)
                    )
                except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                    # Nothing was sent yet.
                    if not left:
                        raise
                    log.info("the model service cannot be reached, another try: %s", error)
                    await asyncio.sleep(0.1)
        raise AssertionError("there is always a try")


def no_upstream() -> UpstreamFailed:
    """Return the failure of requests to a service that has no model service behind it."""
    detail = "no model service is configured; start with --upstream URL, or set base_url in [upstream]"
    return UpstreamFailed("no-upstream", detail, 501)


@contextmanager
def _translated() -> Iterator[None]:
    """Turn errors of the HTTP client into failures of the model service; its address is for the log alone."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        log.warning("the model service failed: %s: %s", type(error).__name__, error)
        raise _failure_of(error) from error


def _failure_of(error: Exception) -> UpstreamFailed:
    match error:
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            detail = "the model service cannot be reached; its operator finds the reason in the log"
            return UpstreamFailed("upstream-unreachable", detail)
        case TimeoutError():
            return UpstreamFailed("upstream-timeout", "the model service stopped answering", 504)
        case aiohttp.ClientResponseError():
            return UpstreamFailed("upstream-broken", "the model service does not answer in HTTP")
        case _:
            return UpstreamFailed("upstream-cut", "the model service broke off its answer")
