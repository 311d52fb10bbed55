"""A scripted model and search for responses, and what comes of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from parquetry.errors import StorageError
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.responses.answering import Answering
from parquetry.serving.responses.asking import request_of
from parquetry.serving.responses.messages import messages_of
from parquetry.serving.responses.searching import FoundExcerpt
from parquetry.serving.responses.transcript import ResponseTranscript
from tests.serving.responses.checks import check_events
from tests.serving.responses.models import chunks

SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
FUNCTION = {"type": "function", "name": "get_time", "parameters": {"type": "object"}, "strict": False}
BLUE = FoundExcerpt("file-1", "sky.md", 0.9, "The sky is blue.", {"year": 2020})
RED = FoundExcerpt("file-2", "mars.md", 0.5, "Mars is red.")


@dataclass
class Scripted:
    """A model that gives scripted answers, and a search with results by query; both raise on anything else."""

    answers: list[Any]
    """completions, or errors to raise"""
    found: Mapping[str, Sequence[FoundExcerpt] | Exception] = field(default_factory=dict)
    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    searched: list[Sequence[str]] = field(default_factory=list)
    open: int = 0
    """requests that are not closed"""

    @asynccontextmanager
    async def ask(self, body: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[Mapping[str, Any]]]:
        self.bodies.append(json.loads(json.dumps(body)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.open += 1
        try:
            yield self._chunks(answer, body)
        finally:
            self.open -= 1

    async def _chunks(self, answer: Any, body: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
        if not body["stream"]:
            yield answer
            return
        for chunk in answer if isinstance(answer, list) else chunks(answer):
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def search(self, queries: Sequence[str]) -> Sequence[FoundExcerpt]:
        self.searched.append(queries)
        results = [self.found[each] for each in queries]
        for each in results:
            if isinstance(each, Exception):
                raise each
        return [hit for hits in results for hit in hits]


def run(model: Scripted, stream: bool = True, **fields: Any) -> tuple[Any, list[Mapping[str, Any]]]:
    """Return the response, checked, and its events."""
    request = request_of({"model": "m", "input": "Hi", "stream": stream, **fields})
    transcript = ResponseTranscript(request, "resp_1", stored=False)
    answering = Answering(request, transcript, "m", model.ask, model.search)
    events: list[Mapping[str, Any]] = []

    async def collect() -> None:
        async for event in answering.events(messages_of(request.items)):
            events.append(json.loads(json.dumps(event)))

    try:
        asyncio.run(collect())
        events.append(transcript.finish(transcript.ended()))
    except (UpstreamFailed, StorageError) as error:
        if not events:
            raise
        events += transcript.fail("server_error", str(error))
    assert model.open == 0
    return check_events(events), events


def kinds(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the types of events, without the pieces."""
    return [each["type"].removeprefix("response.") for each in events if not each["type"].endswith(".delta")]
