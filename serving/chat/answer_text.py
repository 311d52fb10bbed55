"""The text of a streamed answer, out of the stream as clients of the proxy get it."""

from __future__ import annotations

from parquetry.serving.chat.event_stream import EventBuffer


class AnswerText:
    """Reads the text out of a stream."""

    def __init__(self) -> None:
        self._events = EventBuffer()

    def feed(self, block: bytes) -> str:
        """Add a block of the stream; return the text that is new in it.

        Raises:
            UpstreamFailed: it is no stream of a chat.
        """
        found = []
        for event in self._events.feed(block):
            if event.data is None or event.is_done:
                continue
            choices = event.json().get("choices")
            choice = choices[0] if isinstance(choices, list) and choices else None
            delta = choice.get("delta") if isinstance(choice, dict) else None
            text = delta.get("content") if isinstance(delta, dict) else None
            if isinstance(text, str):
                found.append(text)
        return "".join(found)
