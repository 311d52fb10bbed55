"""Multi-turn tasks of the Berkeley Function Calling Leaderboard: the user's requests, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.dialogs import add_message, is_message
from parquetry.sessions.transcripts.session import SessionBuilder


class Bfcl:
    """One task per line: `{"id": ..., "question": [[{"role": "user", "content": ...}], ...]}`.

    Source: https://gorilla.cs.berkeley.edu/blogs/13_bfcl_v3_multi_turn.html
    """

    name = "bfcl"

    def claims(self, content: Content) -> bool:
        return any(_turns(value) for value in content.head)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        for number, (place, value) in enumerate(content.each(), start=1):
            turns = _turns(value)
            if not turns or not isinstance(value, dict):
                yield Unread(place, "no `question` of several turns")
                continue
            builder = SessionBuilder(self.name, str(value.get("id") or number))
            for message in (message for turn in turns if isinstance(turn, list) for message in turn):
                if not add_message(builder, message):
                    yield Unread(place, "a message without role or content")
            if (session := builder.build()) is not None:
                yield session


def _turns(value: object) -> list[Any]:
    turns = value.get("question") if isinstance(value, dict) else None
    if not isinstance(turns, list):
        return []
    first = next((turn for turn in turns if isinstance(turn, list) and turn), None)
    return turns if first is not None and is_message(first[0]) else []
