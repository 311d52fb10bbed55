"""Logs of Claude Code: one event per line, and several sessions in a file if one was continued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.blocks import add_content, add_result, as_json, content_text, part_text
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.harness import add_user_text, without_reminders
from parquetry.sessions.transcripts.session import Origin, SessionBuilder

_SPOKEN = ("user", "assistant")
_MARKS = ("sessionId", "uuid", "parentUuid", "isSidechain", "timestamp")
_UNSAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
"""flags of messages from the program to the model or between agents, and of summaries of messages in the file"""


class ClaudeCode:
    """JSON Lines of `user`, `assistant`, `summary` and other events; or one object with `loglines`.

    Messages keep the order in which they were written, rewound ones included. Messages copied from a continued session
    (the same `uuid` again) count once.
    """

    name = "claude-code"

    def claims(self, content: Content) -> bool:
        return any(_is_event(event) for value in content.head for event in _events_of(value))

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        log = _Log(self.name)
        for place, event in _events(content):
            problem = log.add(event)
            if problem is not None:
                yield Unread(place, problem)
        for builder in log.titled():
            if (session := builder.build()) is not None:
                yield session


class _Log:
    """Sessions of a file, built event by event."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._builders: dict[str, SessionBuilder] = {}
        self._summaries: list[tuple[object, object]] = []
        self._homes: dict[str, str] = {}
        self._written: set[tuple[str, str]] = set()

    def add(self, event: object) -> str | None:
        """Add one event; return a description of the problem if it is invalid."""
        kind = event.get("type") if isinstance(event, dict) else None
        if not isinstance(event, dict) or not isinstance(kind, str):
            return "no event of a session"
        if kind == "summary":
            self._summaries.append((event.get("leafUuid"), event.get("summary")))
        if kind not in _SPOKEN or any(event.get(mark) is True for mark in _UNSAID):
            return None
        name, uuid = event.get("sessionId"), event.get("uuid")
        name = name if isinstance(name, str) else ""
        if isinstance(uuid, str):
            self._homes[uuid] = name
            written = (uuid, as_json(event.get("message")))
            if written in self._written:
                return None
            self._written.add(written)
        builder = self._builders.setdefault(name, SessionBuilder(self._format, name))
        return None if _add(builder, event) else "a message without content"

    def titled(self) -> Iterable[SessionBuilder]:
        """Return the sessions, each with its last summary as title."""
        for leaf, summary in self._summaries:
            name = self._homes.get(leaf) if isinstance(leaf, str) else None
            if name is None and len(self._builders) == 1:
                name = next(iter(self._builders))
            if name is not None and name in self._builders:
                self._builders[name].title = summary
        return self._builders.values()


def _events_of(value: object) -> list[object]:
    """Return the events in one value of a file: the value itself, or those of a whole session."""
    loglines = value.get("loglines") if isinstance(value, dict) else None
    return loglines if isinstance(loglines, list) else [value]


def _events(content: Content) -> Iterator[tuple[str, object]]:
    for place, value in content.each():
        events = _events_of(value)
        for number, event in enumerate(events, start=1):
            yield (place if len(events) == 1 else f"{place}, event {number}"), event


def _is_event(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in _SPOKEN
        and isinstance(value.get("message"), dict)
        and any(mark in value for mark in _MARKS)
    )


def _add(builder: SessionBuilder, event: dict[str, Any]) -> bool:
    """Append the message of an event; return False if it has none."""
    message = event.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
        return False
    origin, content = Origin(event.get("uuid"), event.get("timestamp")), message["content"]
    builder.note("folder", event.get("cwd"))
    builder.note("branch", event.get("gitBranch"))
    builder.note("model", message.get("model"))
    if event["type"] == "assistant":
        add_content(builder, "assistant", content, origin)
        return True
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "tool_result":
            text = without_reminders(content_text(part.get("content")))
            add_result(builder, text, call=part.get("tool_use_id"), origin=origin)
        else:
            add_user_text(builder, part_text(part), origin)
    return True
