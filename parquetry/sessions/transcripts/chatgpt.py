"""ChatGPT's export, `conversations.json`: a conversation is a tree that also holds regenerated messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.blocks import add_call, add_result, as_json
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, role_of

_UNSAID = ("user_editable_context", "model_editable_context", "reasoning_recap", "app_pairing_content")
"""content types of instructions and memories shown to the model in every conversation, and of remarks of the program"""
_PICTURES = {"image_asset_pointer": "[image]", "video_container_asset_pointer": "[video]"}


class ChatGpt:
    """A list of conversations, or one; reads the branch of each that was shown last."""

    name = "chatgpt"

    def claims(self, content: Content) -> bool:
        return any(_is_conversation(value) for value in content.head)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        for number, (place, value) in enumerate(content.each(), start=1):
            if not isinstance(value, dict) or not _is_conversation(value):
                yield Unread(place, "no conversation with a `mapping`")
                continue
            name = value.get("conversation_id") or value.get("id") or str(number)
            builder = SessionBuilder(self.name, str(name), value.get("title"))
            builder.note("model", value.get("default_model_slug"))
            messages, whole = _branch(value)
            if not whole:
                yield Unread(place, "a message names one before it that is missing; what stood before is left out")
            for message in messages:
                _add(builder, message)
            if (session := builder.build()) is not None:
                yield session


def _is_conversation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict) and not _is_foreign(value["mapping"])


def _is_foreign(mapping: dict[str, Any]) -> bool:
    return any(not isinstance(node, dict) or "message" not in node for node in list(mapping.values())[:3])


def _branch(conversation: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
    """Return the messages from the root to the current node, and False if the path is broken."""
    mapping = conversation["mapping"]
    node_id = conversation.get("current_node")
    if not isinstance(node_id, str) or node_id not in mapping:
        node_id = _last_leaf(mapping)
    found: list[dict[str, Any]] = []
    visited: set[str] = set()
    while isinstance(node_id, str) and node_id not in visited:
        visited.add(node_id)
        node = mapping.get(node_id)
        if not isinstance(node, dict):
            return found[::-1], False
        if isinstance(node.get("message"), dict):
            found.append({"id": node_id, **node["message"]})
        node_id = node.get("parent")
    return found[::-1], node_id is None


def _last_leaf(mapping: dict[str, Any]) -> str | None:
    """Return the most recent message without children."""
    best: str | None = None
    latest: int | float = -1
    for node_id, node in mapping.items():
        if isinstance(node, dict) and not node.get("children"):
            message = node.get("message")
            time = message.get("create_time") if isinstance(message, dict) else None
            # Integers may exceed the range of float.
            written = time if isinstance(time, int | float) else 0
            if written >= latest:
                best, latest = node_id, written
    return best


def _add(builder: SessionBuilder, message: dict[str, Any]) -> None:
    author, content, metadata = (_object(message.get(key)) for key in ("author", "content", "metadata"))
    role, kind = role_of(author.get("role")), content.get("content_type")
    if role is None or kind in _UNSAID or metadata.get("is_visually_hidden_from_conversation") is True:
        return
    origin, recipient = Origin(message.get("id"), message.get("create_time")), message.get("recipient")
    builder.note("model", metadata.get("model_slug"))
    if kind == "thoughts":
        builder.add(role, _thoughts(content.get("thoughts")), kind="thinking", origin=origin)
    elif role == "tool":
        add_result(builder, _text(content), call=None, origin=origin, tool=author.get("name"))
    elif role == "assistant" and isinstance(recipient, str) and recipient != "all":
        add_call(builder, recipient, _text(content), call=None, origin=origin)
    else:
        builder.add(role, _text(content), origin=origin)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n\n".join(filter(None, map(_part, parts)))
    quoted = [content.get(key) for key in ("title", "url", "text", "result", "output_str") if content.get(key)]
    return "\n".join(text if isinstance(text, str) else as_json(text) for text in quoted)


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = part.get("content_type")
    if isinstance(kind, str) and kind in _PICTURES:
        return _PICTURES[kind]
    return part["text"] if isinstance(part.get("text"), str) else ""


def _thoughts(thoughts: object) -> str:
    texts = (
        [thought.get("content") for thought in thoughts if isinstance(thought, dict)]
        if isinstance(thoughts, list)
        else []
    )
    return "\n\n".join(text for text in texts if isinstance(text, str))
