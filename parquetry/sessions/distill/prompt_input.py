"""The model's input for a part of a session: JSON, so that no text can end early and become something else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from parquetry.credentials import masked
from parquetry.sessions.model import Message, Window


@dataclass(frozen=True, slots=True)
class Frame:
    """Input of the model, and the messages that its labels stand for."""

    content: str
    """JSON"""
    labelled: Mapping[str, Message]
    """`c1`, `c2`, ... of the context, `m1`, `m2`, ... of the messages to learn from, in order"""
    to_learn_from: frozenset[str]
    """labels of the messages to learn from"""


def frame(window: Window, at: datetime) -> Frame:
    """Build the model's input for a window.

    The model sees labels instead of message ids, which may be long, and no credentials: neither the model nor the cache
    of its answers needs them.

    Args:
        window: of a session.
        at: UTC, of the session.
    """
    context = {f"c{number}": message for number, message in enumerate(window.context, start=1)}
    messages = {f"m{number}": message for number, message in enumerate(window.messages, start=1)}
    content = {
        "session": {"date": f"{at:%Y-%m-%d}"},
        "context": [_framed(label, message) for label, message in context.items()],
        "messages": [_framed(label, message) for label, message in messages.items()],
    }
    # Escaped letters would cost many tokens each.
    return Frame(json.dumps(content, ensure_ascii=False), {**context, **messages}, frozenset(messages))


def _framed(label: str, message: Message) -> dict[str, Any]:
    framed: dict[str, Any] = {"id": label, "role": message.role, "kind": message.kind}
    if message.at is not None:
        framed["at"] = f"{message.at:%Y-%m-%dT%H:%M}"
    if message.tool is not None:
        framed["tool"] = message.tool
    return {**framed, "text": masked(message.text)}
