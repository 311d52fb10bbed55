"""Requests that wait to be sent, in an anonymous temporary file, so that memory holds none of their texts."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from parquetry.settings.batch_api import BatchApiSettings
from parquetry.storage.lake.batches import BatchItem

Owner = tuple[str, str]
"""namespace and name of a source"""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request for a batch."""

    body: Mapping[str, Any]
    owner: Owner
    tokens: int
    """maximum number of tokens"""
    usd: float
    """maximum cost in US dollars, at the price of a batch"""
    counted: int
    """expected number of tokens; of a text, as the embedder counts them"""
    place: str = ""
    """place of its answer, as in the record"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request in the outbox."""

    custom_id: str
    request: BatchRequest
    """without its body"""
    offset: int
    """offset of its line, in bytes"""
    size: int
    """bytes of its line"""

    def item(self, places: Mapping[Owner, int]) -> BatchItem:
        """Return it as an item of a claim, whose sources have these places."""
        asked = self.request
        return BatchItem(self.custom_id, places[asked.owner], asked.counted, asked.place)


class Outbox:
    """The requests of a run that are not sent yet, without duplicates. Not thread-safe.

    Args:
        endpoint: path that all requests are for.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._file = tempfile.TemporaryFile(prefix="parquetry-batch-")  # noqa: SIM115 - closed by `close`
        self._end = 0
        self._waiting: dict[str, Waiting] = {}

    def __contains__(self, custom_id: str) -> bool:
        return custom_id in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def tokens(self) -> int:
        """Expected tokens of all requests."""
        return sum(each.request.counted for each in self._waiting.values())

    def add(self, custom_id: str, request: BatchRequest) -> None:
        """Add a request."""
        told = {"custom_id": custom_id, "method": "POST", "url": self._endpoint, "body": request.body}
        line = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        self._file.seek(self._end)
        self._file.write(line)
        self._waiting[custom_id] = Waiting(custom_id, replace(request, body={}), self._end, len(line))
        self._end += len(line)

    def take(self, limits: BatchApiSettings) -> list[Waiting]:
        """Remove and return as many of the first requests as one batch may hold; at least one, unless none is left."""
        part: list[Waiting] = []
        size = tokens = 0
        for each in self._waiting.values():
            size, tokens = size + each.size, tokens + each.request.tokens
            too_many = len(part) >= limits.max_requests or size > limits.max_bytes
            if part and (too_many or tokens > (limits.max_tokens or tokens)):
                break
            part.append(each)
        for each in part:
            del self._waiting[each.custom_id]
        return part

    def clear(self) -> list[Waiting]:
        """Remove and return all requests."""
        left = list(self._waiting.values())
        self._waiting.clear()
        return left

    def write(self, part: Sequence[Waiting], into: IO[bytes]) -> None:
        """Write the lines of requests that were taken."""
        for each in part:
            self._file.seek(each.offset)
            into.write(self._file.read(each.size))

    def close(self) -> None:
        self._file.close()
