"""Lists of `role` and `content` in any enclosing structure: the most common shape of chats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parquetry.sessions.model import Role, Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.blocks import add_call, add_content, add_result, content_text
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, numbered, role_of

SESSION_KEYS = (
    "session_id", "sessionId", "session", "conversation_id", "conversationId", "conversation_hash", "chat_id",
    "thread_id", "dialog_id", "dialogue_id",
)  # fmt: skip
_NAME_KEYS = (*SESSION_KEYS, "id", "custom_id", "uuid", "_id", "question_id")
_LIST_KEYS = ("messages", "conversation", "conversations", "dialog", "dialogue")
_TIME_KEYS = ("timestamp", "created_at", "create_time", "createdAt", "time", "date", "ts")
_MESSAGE_KEYS = frozenset({"content", "tool_calls", "function_call"})


@dataclass(frozen=True, slots=True)
class Dialog:
    """One chat as a list of messages."""

    messages: list[Any]
    about: dict[str, Any]
    """values beside the messages; empty if there are none"""


def is_message(value: object) -> bool:
    """Return True if a JSON value is a message with a role; one that names its session is a row of a table instead."""
    return says(value) and isinstance(value, dict) and not any(key in value for key in SESSION_KEYS)


def says(value: object) -> bool:
    """Return True if a JSON value has the keys of a message."""
    return isinstance(value, dict) and role_of(value.get("role")) is not None and not _MESSAGE_KEYS.isdisjoint(value)


def dialog_of(value: object) -> Dialog | None:
    """Return the chat that a JSON value is or contains; None if there is none."""
    if isinstance(value, list):
        return Dialog(value, {}) if value and is_message(value[0]) else None
    if isinstance(value, dict):
        for key in _LIST_KEYS:
            inner = value.get(key)
            if isinstance(inner, list) and inner and is_message(inner[0]):
                return Dialog(inner, value)
    return None


def holds_dialogs(content: Content) -> bool:
    """Return True if a file is a chat as a list of messages, or contains some."""
    return any(is_message(value) or dialog_of(value) is not None for value in content.head)


def read_dialogs(content: Content, format: str) -> Iterator[Transcript | Unread]:
    """Yield the chats of a file accepted by `holds_dialogs`."""
    single = SessionBuilder(format)
    for number, (place, value) in enumerate(content.each(), start=1):
        if is_message(value):
            add_message(single, value)
            continue
        dialog = dialog_of(value)
        if dialog is None:
            yield Unread(place, "no messages with a role and a content")
            continue
        builder = SessionBuilder(format, name_of(dialog.about) or numbered(number), dialog.about.get("title"))
        builder.note("model", dialog.about.get("model"))
        builder.add("system", content_text(dialog.about.get("system")))
        for ordinal, message in enumerate(dialog.messages, start=1):
            if not add_message(builder, message):
                yield Unread(place, f"message {ordinal} has no role or no content")
        if (session := builder.build()) is not None:
            yield session
    if (session := single.build()) is not None:
        yield session


def name_of(value: dict[str, Any]) -> str:
    """Return the session name in an object; empty if it has none."""
    for key in _NAME_KEYS:
        name = value.get(key)
        if isinstance(name, str | int) and not isinstance(name, bool) and str(name).strip():
            return str(name)
    return ""


def _time_of(value: dict[str, Any]) -> object:
    return next((value[key] for key in _TIME_KEYS if value.get(key)), None)


def add_message(builder: SessionBuilder, message: object) -> bool:
    """Append one message with its role, content and tool calls.

    Returns:
        False if it is not a message.
    """
    role = role_of(message.get("role")) if isinstance(message, dict) else None
    if not isinstance(message, dict) or role is None:
        return False
    origin = Origin(message.get("id") or message.get("uuid"), _time_of(message))
    if role == "tool":
        call = message.get("tool_call_id")
        if isinstance(calls := message.get("tool_call_ids"), list) and calls:
            call = calls[0]
        add_result(builder, message.get("content"), call=call, origin=origin, tool=message.get("name"))
        return "content" in message
    builder.add(role, message.get("reasoning_content"), kind="thinking", origin=origin)
    add_content(builder, role, message.get("content"), origin)
    builder.add(role, message.get("refusal"), origin=origin)
    return _add_calls(builder, role, message, origin) or "content" in message


def _add_calls(builder: SessionBuilder, role: Role, message: dict[str, Any], origin: Origin) -> bool:
    """Append the tool calls beside the content of a message; return True if there are any."""
    calls = message.get("tool_calls")
    calls = list(calls) if isinstance(calls, list) else []
    if isinstance(message.get("function_call"), dict):
        calls.append({"function": message["function_call"]})
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            add_call(
                builder,
                function.get("name"),
                function.get("arguments"),
                call=call.get("id"),
                origin=origin,
                role=role,
            )
    return bool(calls)
