"""Messages in the form of Anthropic's API: tool use and thoughts are blocks of the content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.dialogs import dialog_of, holds_dialogs, is_message, read_dialogs

_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use")


class AnthropicMessages:
    """The same files as for OpenAI, with content blocks.

    Source: https://docs.anthropic.com/en/api/messages
    """

    name = "anthropic"

    def claims(self, content: Content) -> bool:
        return holds_dialogs(content) and has_blocks(content)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        return read_dialogs(content, self.name)


def has_blocks(content: Content) -> bool:
    """Return True if the first messages of a file have Anthropic's blocks, or a system prompt beside them."""
    return any(_of_anthropic(value) for value in content.head)


def _of_anthropic(value: object) -> bool:
    if is_message(value):
        return isinstance(value, dict) and _any_block(value)
    dialog = dialog_of(value)
    if dialog is None:
        return False
    return isinstance(dialog.about.get("system"), str | list) or any(map(_any_block, dialog.messages))


def _any_block(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(isinstance(part, dict) and part.get("type") in _BLOCKS for part in content)
