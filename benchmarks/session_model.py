"""A language model for benchmarks, on loopback: it learns sentences about somebody, and compares them by their words.

python -m benchmarks.session_model
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from benchmarks.conditions import ROOT

_SENTENCE = re.compile(r"[^.!?\n。！？]{12,160}[.!?。！？]")
_ABOUT_ONESELF = re.compile(r"^(?:User \d: )?(I |I'm |I've |My |我)")
_WORD = re.compile(r"\w+")
MOST = 4
"""statements of a window"""


def learned(shown: dict[str, Any]) -> list[dict[str, Any]]:
    """What is learned from a window: what people say of themselves."""
    entries: list[dict[str, Any]] = []
    for message in shown["messages"]:
        if message["role"] != "user":
            continue
        for sentence in _SENTENCE.findall(message["text"]):
            text = sentence.strip()
            if _ABOUT_ONESELF.match(text) and len(entries) < MOST:
                said = {"text": text, "kind": "fact", "level": "organization", "confidence": 0.9}
                entries.append({**said, "evidence": [message["id"]]})
    return entries


def judged(shown: dict[str, Any]) -> dict[str, Any]:
    """The verdict about a statement: known if nearly all of its words are, merged if most are."""
    new = set(_WORD.findall(shown["new"]["text"].casefold()))
    for known in shown["known"]:
        words = set(_WORD.findall(known["text"].casefold()))
        share = len(new & words) / max(1, len(new | words))
        if share >= 0.8:
            return _verdict("existing", [known["ordinal"]], None)
        if share >= 0.5:
            return _verdict("merged", [known["ordinal"]], f"{known['text']} {shown['new']['text']}")
    return _verdict("new", [], None)


def _verdict(verdict: str, ordinals: list[int], merged: str | None) -> dict[str, Any]:
    return {"verdict": verdict, "ordinals": ordinals, "merged_text": merged, "reasoning": "by shared words"}


def main() -> None:
    """Serve until standard input ends; the first line of output is the URL."""
    sys.path.insert(0, str(ROOT))
    from tests.servers.chat_server import ChatServer, said_json

    def answer(body: Any) -> Any:
        shown = json.loads(body["messages"][1]["content"])
        return said_json({"entries": learned(shown)} if "messages" in shown else judged(shown))

    with ChatServer(answer) as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            if line.strip() == "count":
                print(len(server.bodies), flush=True)


if __name__ == "__main__":
    main()
