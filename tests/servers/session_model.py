"""A small deterministic language model for chat sessions: it reads the framed JSON and answers by rule.

It learns lines of the form `level/kind: statement` from a user's messages. Two statements with the same subject (the
words before the first colon) are merged by concatenation; one with `not` in it contradicts one without.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.servers.chat_server import Reply, said_json

_LINE = re.compile(r"^(public|organization|individual)/(methodology|preference|tool|lesson|fact): (.+)$", re.MULTILINE)


def asked(body: Any) -> dict[str, Any]:
    """Return the JSON in the request."""
    return json.loads(body["messages"][1]["content"])


def is_distilling(body: Any) -> bool:
    """Return True if a request is about a session, False if it is about known statements."""
    return "messages" in asked(body)


def answer(body: Any) -> Reply:
    """Return the reply to any request."""
    shown = asked(body)
    return said_json(distilled(shown) if "messages" in shown else compared(shown))


def distilled(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the entries learned from a window."""
    entries = [
        {"text": text, "kind": kind, "level": level, "confidence": 0.9, "evidence": [message["id"]]}
        for message in shown["messages"]
        if message["role"] == "user" and message["kind"] == "speech"
        for level, kind, text in _LINE.findall(message["text"])
    ]
    return {"entries": entries}


def compared(shown: dict[str, Any]) -> dict[str, Any]:
    """Return verdicts on statements."""
    return {"verdicts": [{"statement": each["statement"], **judged(each)} for each in shown["statements"]]}


def judged(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on a statement."""
    new = shown["new"]["text"]
    for known in shown["known"]:
        if subject(known["text"]) != subject(new):
            continue
        denies = (" not " in known["text"]) != (" not " in new)
        verdict = "contradicts" if denies else "merged"
        merged = None if denies else f"{known['text']} {new}"
        return _verdict(verdict, [known["ordinal"]], merged)
    return _verdict("new", [], None)


def subject(text: str) -> str:
    """Return the subject of a statement."""
    return text.partition(":")[0]


def _verdict(verdict: str, ordinals: list[int], merged: str | None) -> dict[str, Any]:
    return {"verdict": verdict, "ordinals": ordinals, "merged_text": merged, "reasoning": "by rule"}
