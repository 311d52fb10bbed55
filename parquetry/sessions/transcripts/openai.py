"""Messages in the form of OpenAI's chat API, and fine-tuning files of them."""

from __future__ import annotations

from collections.abc import Iterator

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.anthropic import has_blocks
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.dialogs import holds_dialogs, read_dialogs


class OpenAiMessages:
    """A list of messages, objects with `messages`, lists of either, or JSON Lines of either.

    Source: https://platform.openai.com/docs/api-reference/chat
    """

    name = "openai"

    def claims(self, content: Content) -> bool:
        return holds_dialogs(content) and not has_blocks(content)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        return read_dialogs(content, self.name)
