"""Trajectories of SWE-agent: thoughts, actions and observations of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.blocks import content_text
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.dialogs import add_message
from parquetry.sessions.transcripts.session import SessionBuilder, numbered, role_of

_STEP_KEYS = frozenset({"action", "observation"})


class SweAgent:
    """One object with `history`, or only with a `trajectory` of actions and observations. Demonstrations are left out.

    Source: https://swe-agent.com/latest/usage/trajectories/
    """

    name = "swe-agent"

    def claims(self, content: Content) -> bool:
        return any(_history(value) or _steps(value) for value in content.head)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        for number, (place, value) in enumerate(content.each(), start=1):
            builder = SessionBuilder(self.name, numbered(number))
            if isinstance(value, dict):
                builder.note("environment", value.get("environment"))
            if history := _history(value):
                acted = False
                for ordinal, message in enumerate(history, start=1):
                    if not _add(builder, message, acted=acted):
                        yield Unread(place, f"message {ordinal} has no role or no content")
                    acted = isinstance(message, dict) and isinstance(message.get("action"), str)
            elif steps := _steps(value):
                for step in steps:
                    _add_step(builder, step)
            else:
                yield Unread(place, "no history and no trajectory")
            if (session := builder.build()) is not None:
                yield session


def _history(value: object) -> list[Any]:
    found = value.get("history") if isinstance(value, dict) else None
    first = found[0] if isinstance(found, list) and found else None
    return found if isinstance(found, list) and isinstance(first, dict) and role_of(first.get("role")) else []


def _steps(value: object) -> list[Any]:
    found = value.get("trajectory") if isinstance(value, dict) else None
    first = found[0] if isinstance(found, list) and found else None
    return found if isinstance(found, list) and isinstance(first, dict) and first.keys() >= _STEP_KEYS else []


def _add(builder: SessionBuilder, message: object, *, acted: bool) -> bool:
    """Append a message of a history; a message to the agent after an action is an observation."""
    if not isinstance(message, dict):
        return False
    if message.get("is_demo") is True or isinstance(message.get("tool_calls"), list):
        return message.get("is_demo") is True or add_message(builder, message)
    role, content = role_of(message.get("role")), message.get("content")
    if role == "user" and acted:
        builder.add("tool", content_text(content), kind="tool_result", tool="shell")
        return True
    if role == "assistant" and isinstance(message.get("action"), str):
        _add_action(builder, message)
        return True
    return add_message(builder, message)


def _add_step(builder: SessionBuilder, step: object) -> None:
    if isinstance(step, dict):
        _add_action(builder, step)
        builder.add("tool", step.get("observation"), kind="tool_result", tool="shell")


def _add_action(builder: SessionBuilder, message: dict[str, Any]) -> None:
    thought = message.get("thought")
    if not isinstance(thought, str):
        thought = message.get("content")
    builder.add("assistant", thought)
    builder.add("assistant", message.get("action"), kind="tool_call", tool="shell")
