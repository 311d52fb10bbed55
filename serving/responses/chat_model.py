"""The model behind responses: chat completions of the upstream, whole or streamed, as chunks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from parquetry.llm.reply_forms import CAPS, CapName
from parquetry.plural import size_of
from parquetry.serving.chat.failures import UpstreamFailed, refusal
from parquetry.serving.chat.upstream import Sender, Upstream, UpstreamAnswer

LIMIT: CapName = "max_tokens"
"""key of the limit of tokens in bodies; the upstream gets it under the name that its model takes"""
_REFUSED_STATUS = frozenset({400, 422})


class ChatModel:
    """Models of the upstream, asked with one caller's key.

    Args:
        upstream: the model service.
        sender: key and headers of the caller's requests.
        url: address of the model service, under which is remembered what its models take.
    """

    def __init__(self, upstream: Upstream, sender: Sender, url: str) -> None:
        self._upstream, self._sender, self._url = upstream, sender, url

    @asynccontextmanager
    async def ask(self, body: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[Mapping[str, Any]]]:
        """Ask for a chat completion; leaving the block ends the request, also in the middle of its answer.

        Args:
            body: the request; `stream` says how the answer comes.

        Yields:
            The chunks; an answer that is not streamed is one.

        Raises:
            UpstreamFailed: the model service failed, or refused the request, before it began to answer.
        """
        if not body["stream"]:
            whole = await self._limited(body, self._whole)
            yield _only(whole)
            return
        answer = await self._limited(body, self._streamed)
        try:
            yield self._chunks(answer)
        finally:
            answer.close()

    async def _whole(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._upstream.complete(body, self._sender)

    async def _streamed(self, body: Mapping[str, Any]) -> UpstreamAnswer:
        return await self._upstream.stream(body, self._sender)

    async def _limited(self, body: Mapping[str, Any], ask: Any) -> Any:
        """Ask, with the limit of tokens under the name that the model takes."""
        if LIMIT not in body:
            return await ask(body)
        place = (self._url, str(body["model"]))
        names = CAPS.in_order(place)
        rest = {name: value for name, value in body.items() if name != LIMIT}
        for name in names:
            try:
                answer = await ask({**rest, name: body[LIMIT]})
            except UpstreamFailed as failed:
                if name == names[-1] or failed.status not in _REFUSED_STATUS or name not in _words(failed):
                    raise
                continue
            CAPS.remember(place, name)
            return answer
        raise AssertionError("there is always a name")

    async def _chunks(self, answer: UpstreamAnswer) -> AsyncIterator[Mapping[str, Any]]:
        read, most = 0, self._upstream.max_answer_bytes
        async for event in answer.events():
            # A response is kept whole, for its last event.
            read += len(event.raw)
            if read > most:
                raise UpstreamFailed(
                    "upstream-broken", f"the answer of the model service is larger than {size_of(most)}"
                )
            if event.is_done:
                return
            if event.data is None:
                continue
            chunk = event.json()
            if isinstance(chunk.get("error"), dict | str):
                raise refusal(502, json.dumps(chunk).encode(), own_key=self._sender.is_own)
            yield chunk


def _words(failed: UpstreamFailed) -> str:
    told = failed.told or {}
    return f"{told.get('message')} {told.get('param')}"


async def _only(chunk: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
    yield chunk
