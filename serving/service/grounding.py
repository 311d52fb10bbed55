"""Chunks and documents as text for a language model: data below heads of ours, which no document can imitate.

Texts are framed, stripped of what a reader does not see, and changed where they look like a head, a number of a
citation, or a mark of the formats in which models are addressed. What a text asks for in plain words stays: the frame
says that it is data, and code alone decides what a model may call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from parquetry.masking import without_tokens
from parquetry.printing import plain_text
from parquetry.storage.search.searcher import Hit

MOST_CONTEXT = 12_000
"""characters of a context, instructions included"""
_LEAST_PART = 200
"""characters of a text below which the end of a context is left empty"""
_LONGEST_NUMBER = len("[999999] ")
"""characters of the number in a head"""
_LONGEST_NAME = 200
"""characters of a file name or path in a head"""
_BEGIN, _END = "<documents>", "</documents>"

_WIDE = {
    letter: f"[{letter}{letter.upper()}{chr(ord(letter) + 0xFEE0)}{chr(ord(letter.upper()) + 0xFEE0)}]"
    for letter in "source"
}
_HEAD = re.compile(rf"[\[［〔【⟦❲](?=\s*{''.join(_WIDE[letter] for letter in 'source')}\s*[:：])")
_NUMBER = re.compile(r"[\[［【](\d[\d\s,;–-]{0,40})[\]］】]")
_TAG = re.compile(
    r"<(?=\s*[|｜]|<\s*(?:/\s*)?sys|\s*(?:/\s*)?(?:documents?|system|user|assistant|developer|human|tool\w*|function\w*|think\w*|instructions?|"
    r"context|messages?|s|bos|eos|im_\w+|(?:start|end)_of_\w+|start_header_id|end_header_id|eot_id|begin_of_text|endoftext)\b)"
    r"|\[(?=/?(?:INST|SYS|SYSTEM|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\b)",
    re.IGNORECASE,
)
"""beginnings of marks of the formats in which models are addressed, and of the frame"""
_ROLE = re.compile(
    r"^(?=[^\S\n]*(?:\#{1,6}[^\S\n]*|\*{1,2})?(?:system|user|assistant|developer|human|tool|instructions?|response)\b"
    r"(?:[^\S\n]*(?:message|prompt))?[^\S\n]*\*{0,2}[:：])",
    re.IGNORECASE | re.MULTILINE,
)
"""beginnings of lines as in a printed conversation"""


def as_data(text: str, *, numbered: bool = False) -> str:
    """Return a text in which nothing looks like the frame, a head, or a turn of a conversation.

    Args:
        text: of a document.
        numbered: citations are numbers: those of the text itself are changed, too.
    """
    text = without_tokens(plain_text(text))
    text = _HEAD.sub("(", text)
    text = _TAG.sub(lambda found: f"{found[0]} ", text)
    text = _ROLE.sub("> ", text)
    return _NUMBER.sub(r"(\1)", text) if numbered else text


def name_as_data(name: str) -> str:
    """Return a file name or path for a head: one line without brackets."""
    line = " ".join(as_data(str(name)).split()).replace("[", "(").replace("]", ")").replace("］", ")")
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 1]}…"


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A chunk, or a whole document, that a model is shown."""

    document_id: str
    filename: str
    path: str
    """path of the document within its source"""
    text: str
    chunk_index: int | None = None
    """0-based number of the chunk in its document; None for a document"""
    score: float | None = None
    """relevance, 0 to 1; None for a document"""
    number: int | None = None
    """number to cite it by; None for citations by file name"""
    remark: str = ""
    """remark of ours in the head"""

    @classmethod
    def of(cls, hit: Hit) -> ShownPassage:
        """Return the passage for a hit."""
        row = hit.row
        return cls(
            row["document_id"], _name(row), row["path"], row["text"], row["chunk_index"], round(hit.relevance or 0.0, 6)
        )

    @property
    def head(self) -> str:
        """The line above the text."""
        return f"{self.citation}{self.place}"

    @property
    def citation(self) -> str:
        """The beginning of the head: the number, if there is one."""
        return "" if self.number is None else f"[{self.number}] "

    @property
    def place(self) -> str:
        """The head without its number."""
        name = name_as_data(self.filename)
        path = name if self.path == self.filename else name_as_data(self.path)
        remarks = [*([] if path == name else [f"path: {path}"]), *([self.remark] if self.remark else [])]
        return f"[Source: {name}]" + (f" ({'; '.join(remarks)})" if remarks else "")

    def as_json(self) -> dict[str, Any]:
        """Return the item of `rag_sources`."""
        found = {"source": self.filename, "path": self.path, "chunk_id": self.chunk_index, "score": self.score}
        return found if self.number is None else {**found, "n": self.number}


class Sources:
    """Passages that a model was shown in one turn, once each.

    Args:
        numbered: number them, over all calls of the turn.
        first: number of the first.
    """

    def __init__(self, *, numbered: bool = False, first: int = 1) -> None:
        self.numbered = numbered
        self._first = first
        self._known: dict[tuple[str, int | None], ShownPassage] = {}

    def add(self, passage: ShownPassage) -> ShownPassage:
        """Note a passage; return it with its number."""
        key = (passage.document_id, passage.chunk_index)
        known = self._known.get(key)
        if not self.numbered:
            if passage.chunk_index is None and self._has(passage.document_id):
                # The document is among the sources by a chunk.
                return passage
            if passage.chunk_index is not None:
                # The same, in the other order.
                self._known.pop((passage.document_id, None), None)
        number = self._first + len(self._known) if known is None else known.number
        numbered = replace(passage, number=number if self.numbered else None)
        if known is None:
            self._known[key] = numbered
        return numbered

    def _has(self, document_id: str) -> bool:
        return any(each == document_id for each, _ in self._known)

    @property
    def passages(self) -> tuple[ShownPassage, ...]:
        """All of them, in the order in which they were shown."""
        return tuple(self._known.values())

    def as_json(self) -> list[dict[str, Any]]:
        """Return `rag_sources`."""
        return [each.as_json() for each in self.passages]


def framed(passages: Sequence[ShownPassage], sources: Sources, most: int = MOST_CONTEXT) -> str:
    """Return passages as one text, as many as fit; only those are noted as sources.

    Args:
        passages: best first.
        sources: passages of the turn.
        most: maximum characters; the last passage may be cut.
    """
    parts: list[str] = []
    left = most - len(_BEGIN) - len(_END) - 2
    for passage in passages:
        # The number can only take more room than this estimate by the digits that it has more.
        text = as_data(passage.text, numbered=sources.numbered)
        place = passage.place
        room = left - len(place) - (_LONGEST_NUMBER if sources.numbered else 0) - 3
        if room < min(_LEAST_PART, len(text)):
            break
        part = f"{sources.add(passage).citation}{place}\n{text[:room]}"
        parts.append(part)
        left -= len(part) + 2
    return "\n\n".join([_BEGIN, *parts, _END]) if parts else ""


def _name(row: Any) -> str:
    return str(row["filename"] or row["title"] or row["path"])
