"""Server-sent events, taken apart as clients do it; the bytes of each stay as they came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parquetry.serving.chat.failures import UpstreamFailed

DONE = "[DONE]"
"""data of the last event of a stream"""
MOST_EVENT_BYTES = 16 * 1024 * 1024
"""bytes of one event"""
# A line ends with CR LF, LF or CR; an empty line ends an event. Atomic, so that CR LF never counts as two ends.
_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event."""

    raw: bytes
    """as it came, with the empty line that ends it"""
    data: str | None
    """value of `data`; None for comments and other events without"""

    @property
    def is_done(self) -> bool:
        """True for the last event of a stream."""
        return self.data is not None and self.data.strip() == DONE

    def json(self) -> dict[str, Any]:
        """Return the data as an object.

        Raises:
            UpstreamFailed: it is none.
        """
        try:
            value = json.loads(self.data or "")
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise UpstreamFailed("upstream-broken", "the model service sent an event that is no JSON object")
        return value


def encoded(value: Mapping[str, Any]) -> bytes:
    """Return an event with an object as data. JSON escapes all line ends, so nothing in it can end the event."""
    return b"data: " + json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n\n"


class EventBuffer:
    """Takes events out of a stream of bytes."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0

    def feed(self, block: bytes) -> Iterator[ServerEvent]:
        """Add bytes; yield the events that are whole now.

        Raises:
            UpstreamFailed: an event is too large.
        """
        start = 0
        if not self._held and b"\r" not in block:
            # Nearly every block is one event, or a few, with the plain line ends.
            while (end := block.find(b"\n\n", start)) >= 0:
                yield _event(block[start : end + 2])
                start = end + 2
            self._held += block[start:]
        else:
            self._held += block
            # The end of an event may have begun in the block before.
            for found in _END.finditer(self._held, max(0, self._searched - 3)):
                yield _event(bytes(self._held[start : found.end()]))
                start = found.end()
            del self._held[:start]
        self._searched = len(self._held)
        if len(self._held) > MOST_EVENT_BYTES:
            raise UpstreamFailed("upstream-broken", "the model service sent an event that is too large")

    def rest(self) -> ServerEvent | None:
        """Return the event that the end of the stream cut off; None if there is none."""
        raw, self._held, self._searched = bytes(self._held), bytearray(), 0
        event = _event(raw + b"\n\n")
        return None if event.data is None else event


def _event(raw: bytes) -> ServerEvent:
    if raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2 and b"\r" not in raw:
        return ServerEvent(raw, raw[6:-2].decode("utf-8", "replace"))
    values = []
    for line in _LINE.split(raw):
        name, _, value = line.partition(b":")
        if name == b"data":
            values.append(value.removeprefix(b" "))
    return ServerEvent(raw, b"\n".join(values).decode("utf-8", "replace") if values else None)
