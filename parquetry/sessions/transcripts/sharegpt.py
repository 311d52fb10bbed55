"""ShareGPT's form, shared by FastChat and many data sets: the speaker under `from`, and the text under `value`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.dialogs import name_of
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, numbered, role_of

_KEYS = ("conversations", "conversation", "items")
_CALLS = ("function_call", "tool_call")


class ShareGpt:
    """`{"conversations": [{"from": "human", "value": "..."}]}`, one, a list or one per line.

    Source: https://github.com/lm-sys/FastChat/blob/main/docs/training.md
    """

    name = "sharegpt"

    def claims(self, content: Content) -> bool:
        return any(_turns(value) is not None for value in content.head)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        for number, (place, value) in enumerate(content.each(), start=1):
            turns = _turns(value)
            if turns is None or not isinstance(value, dict):
                yield Unread(place, "no conversation of `from` and `value`")
                continue
            builder = SessionBuilder(self.name, name_of(value) or numbered(number), value.get("title"))
            builder.note("model", value.get("model"))
            for ordinal, turn in enumerate(turns, start=1):
                if not _add(builder, turn):
                    yield Unread(place, f"message {ordinal} has no known `from` or no `value`")
            if (session := builder.build()) is not None:
                yield session


def _turns(value: object) -> list[Any] | None:
    if not isinstance(value, dict):
        return None
    for key in _KEYS:
        turns = value.get(key)
        if isinstance(turns, list) and turns and isinstance(turns[0], dict) and {"from", "value"} <= turns[0].keys():
            return turns
    return None


def _add(builder: SessionBuilder, turn: object) -> bool:
    if not isinstance(turn, dict) or not isinstance(turn.get("from"), str) or not isinstance(turn.get("value"), str):
        return False
    origin = Origin(turn.get("id"), turn.get("timestamp"))
    if turn["from"] in _CALLS:
        builder.add("assistant", turn["value"], kind="tool_call", origin=origin)
        return True
    role = role_of(turn["from"])
    if role is None:
        return False
    builder.add(role, turn["value"], kind="tool_result" if role == "tool" else "speech", origin=origin)
    return True
