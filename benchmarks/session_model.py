"""Language model for benchmarks, on loopback: learns sentences about speakers, and compares them by their words.

python -m benchmarks.session_model [STATEMENTS]
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from typing import Any

from benchmarks.conditions import ROOT

_SENTENCE = re.compile(r"[^.!?\n。！？]{12,160}[.!?。！？]")
_ABOUT_ONESELF = re.compile(r"^(?:User \d: )?(I |I'm |I've |My |我)")
_WORD = re.compile(r"\w+")
MOST = 4
"""maximum number of statements per window, unless set on the command line"""


def learned(shown: dict[str, Any], most: int = MOST) -> list[dict[str, Any]]:
    """Return the statements learned from a window: those that speakers make about themselves."""
    entries: list[dict[str, Any]] = []
    for message in shown["messages"]:
        if message["role"] != "user":
            continue
        for sentence in _SENTENCE.findall(message["text"]):
            text = sentence.strip()
            if _ABOUT_ONESELF.match(text) and len(entries) < most:
                said = {"text": text, "kind": "fact", "level": "organization", "confidence": 0.9}
                entries.append({**said, "evidence": [message["id"]]})
    return entries


def judged(shown: dict[str, Any]) -> dict[str, Any]:
    """Return verdicts on statements: known if nearly all of their words are, merged if most are."""
    return {"verdicts": [{"statement": each["statement"], **_judged(each)} for each in shown["statements"]]}


def _judged(shown: dict[str, Any]) -> dict[str, Any]:
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

    most = int(sys.argv[1]) if len(sys.argv) > 1 else MOST

    def shown_in(body: Any) -> Any:
        return json.loads(body["messages"][1]["content"])

    def answer(body: Any) -> Any:
        shown = shown_in(body)
        return said_json({"entries": learned(shown, most)} if "messages" in shown else judged(shown))

    with ChatServer(answer) as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            if line.strip() == "count":
                told: dict[str, Counter[str]] = defaultdict(Counter)
                for body in server.bodies:
                    kind = "distill" if "messages" in shown_in(body) else "compare"
                    read = sum(len(message["content"]) for message in body["messages"])
                    told[kind] += Counter(calls=1, characters=read)
                print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
