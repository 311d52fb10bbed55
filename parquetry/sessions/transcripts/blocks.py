"""The content of one message: a string, or a list of parts as the APIs of OpenAI and Anthropic write them."""

from __future__ import annotations

import json
from typing import Any

from parquetry.sessions.model import Role
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, one_line

_TEXT = ("text", "input_text", "output_text")
_SHOWN = {
    "image": "[image]", "image_url": "[image]", "input_image": "[image]", "input_audio": "[audio]", "audio": "[audio]",
    "video_url": "[video]", "file": "[file]", "input_file": "[file]", "document": "[file]",
}  # fmt: skip
"""placeholders for parts that are not text"""
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_THOUGHTS = ("thinking", "reasoning")


def add_content(builder: SessionBuilder, role: Role, content: object, origin: Origin) -> None:
    """Append the content of a message in order: speech, thoughts, tool calls and their results.

    Args:
        builder: receives the messages.
        role: author of the message.
        content: a string or a list of parts.
        origin: of the message.
    """
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        builder.add(role, content, origin=origin)
        return
    spoken: list[str] = []

    def end_speech() -> None:
        builder.add(role, "\n\n".join(spoken), origin=origin)
        spoken.clear()

    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in _CALLS:
            end_speech()
            add_call(builder, part.get("name"), part.get("input"), call=part.get("id"), origin=origin)
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            end_speech()
            add_result(builder, part.get("content"), call=part.get("tool_use_id"), origin=origin)
        elif kind in _THOUGHTS:
            end_speech()
            builder.add(role, part.get("thinking") or part.get("text"), kind="thinking", origin=origin)
        elif text := part_text(part):
            spoken.append(text)
    end_speech()


def add_call(
    builder: SessionBuilder,
    name: object,
    arguments: object,
    *,
    call: object,
    origin: Origin,
    role: Role = "assistant",
) -> None:
    """Append a tool call.

    Args:
        builder: receives the message.
        name: of the tool.
        arguments: a string, or any JSON value.
        call: id by which the result refers to the call.
        origin: of the message.
        role: of the caller.
    """
    if isinstance(call, str) and isinstance(name, str):
        builder.tools[call] = one_line(name)
    text = arguments if isinstance(arguments, str) else as_json(arguments)
    builder.add(role, text or "()", kind="tool_call", origin=origin, tool=name)


def add_result(builder: SessionBuilder, content: object, *, call: object, origin: Origin, tool: object = None) -> None:
    """Append the result of a tool.

    Args:
        builder: receives the message.
        content: a string, a list of parts, or any JSON value.
        call: id of the call.
        origin: of the message.
        tool: name of the tool, if the format stores it here.
    """
    name = tool if isinstance(tool, str) and tool else builder.tools.get(call) if isinstance(call, str) else None
    builder.add("tool", content_text(content), kind="tool_result", origin=origin, tool=name)


def content_text(content: object) -> str:
    """Return all text of a content, with a placeholder for each part that is not text: `[image]`."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part_text(part) for part in parts]
    return "\n\n".join(filter(None, texts)) if any(texts) else as_json(content)


def part_text(part: object) -> str:
    """Return the text of one part; empty if it has none."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = part.get("type")
    if isinstance(kind, str) and kind in _SHOWN:
        return _shown(part, _SHOWN[kind])
    for key in ("text", "refusal") if kind in _TEXT or kind == "refusal" or kind is None else ("text",):
        value = part.get(key)
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(value, str):
            return value
    return ""


def as_json(value: Any) -> str:
    """Return a JSON value on one line; empty for an empty value."""
    return json.dumps(value, ensure_ascii=False) if value not in (None, "", [], {}) else ""


def _shown(part: dict[str, Any], sign: str) -> str:
    """Return `[file: name]` for a part with a name."""
    inner = part.get("file") if isinstance(part.get("file"), dict) else part
    names = (inner.get(key) for key in ("filename", "file_name", "title", "name")) if isinstance(inner, dict) else ()
    name = next((name for name in names if isinstance(name, str) and name), None)
    return f"{sign[:-1]}: {name}]" if name else sign
