"""claude.ai's export, `conversations.json`: conversations with `chat_messages`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.blocks import add_content
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, role_of


class ClaudeAi:
    """A list of conversations, or one."""

    name = "claude-ai"

    def claims(self, content: Content) -> bool:
        return any(_is_conversation(value) for value in content.head)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        for number, (place, value) in enumerate(content.each(), start=1):
            if not isinstance(value, dict) or not _is_conversation(value):
                yield Unread(place, "no conversation with `chat_messages`")
                continue
            builder = SessionBuilder(self.name, str(value.get("uuid") or number), value.get("name"))
            builder.note("model", value.get("model"))
            for ordinal, message in enumerate(value["chat_messages"], start=1):
                if not _add(builder, message):
                    yield Unread(place, f"message {ordinal} has no known sender")
            if (session := builder.build()) is not None:
                yield session


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def _add(builder: SessionBuilder, message: object) -> bool:
    role = role_of(message.get("sender")) if isinstance(message, dict) else None
    if not isinstance(message, dict) or role is None:
        return False
    origin = Origin(message.get("uuid"), message.get("created_at"))
    content = message.get("content")
    add_content(builder, role, content if isinstance(content, list) and content else message.get("text"), origin)
    for key in ("attachments", "files"):
        for attached in _objects(message.get(key)):
            name, text = attached.get("file_name"), attached.get("extracted_content")
            shown = f"[file: {name}]" if isinstance(name, str) and name else "[file]"
            text = f"{shown}\n{text}" if isinstance(text, str) and text.strip() else shown
            builder.add(role, text, kind="tool_result", origin=origin, tool="attachment")
    return True


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
