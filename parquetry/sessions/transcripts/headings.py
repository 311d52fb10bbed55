"""Markdown and plain text in which a line names the speaker: `## User`, `**Assistant**`, `Human: ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from parquetry.sessions.model import Role, Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.fences import in_code
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, role_of

_WHO = r"(User|Human|Me|You|System|Assistant|AI|Bot|ChatGPT|GPT(?:-[\w.]+)?|Claude|Gemini|Copilot|Cursor|Model|Agent)"
_HEADING = re.compile(
    rf"^(?:#{{1,6}}[ \t]+)?(?:\*\*|__)?{_WHO}(?:[ \t]*[(\[]([^\n)\]]{{0,80}})[)\]])?:?(?:\*\*|__)?:?[ \t]*#*$",
    re.IGNORECASE,
)
"""speaker on a line of its own: a heading, bold, or with a colon; in brackets the time or the model"""
_MARKED = re.compile(r"^#|^\*\*|^__|:(?:\*\*|__)?[ \t]*$")
_INLINE = re.compile(
    rf"^(?:\*\*|__)?{_WHO}(?:[ \t]*[(\[]([^\n)\]]{{0,80}})[)\]])?(?:\*\*|__)?:(?:\*\*|__)?[ \t]+(?=\S)", re.IGNORECASE
)
"""speaker at the beginning of the text"""
_TITLE = re.compile(r"^# (.+)$")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_PROGRAMS = frozenset({"copilot", "cursor"})
_CLAIM_LINES = 2000


class HeadingLogs:
    """One session of a person and a program, each text under its speaker's name."""

    name = "markdown"

    def claims(self, content: Content) -> bool:
        if content.values is not None:
            return False
        lines = content.text.split("\n", _CLAIM_LINES)[:_CLAIM_LINES]
        roles = {mark[0] for mark in _marks(lines).values()}
        return {"user", "assistant"} <= roles

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        lines = content.text.split("\n")
        marks = _marks(lines)
        first = next(iter(marks), 0)
        title = next((found[1] for line in lines[:first] if (found := _TITLE.match(line))), None)
        builder = SessionBuilder(self.name, title=title)
        for number, following in pairwise([*marks, len(lines)]):
            role, said, at = marks[number]
            body = [said, *lines[number + 1 : following]]
            while body and (not body[-1].strip() or body[-1].strip() in ("---", "***", "___")):
                body.pop()
            builder.add(role, "\n".join(body), origin=Origin(at=at))
        if (session := builder.build()) is not None:
            yield session


def _marks(lines: list[str]) -> dict[int, tuple[Role, str, str | None]]:
    """Find the beginnings of turns: line, role, text on that line, and time."""
    code = in_code(lines)
    found: dict[int, tuple[Role, str, str | None]] = {}
    for number, line in enumerate(lines):
        if code[number]:
            continue
        mark = _HEADING.match(line)
        if mark is not None and not _MARKED.search(line):
            mark = None
        said = ""
        if mark is None and (mark := _INLINE.match(line)) is not None:
            said = line[mark.end() :]
        if mark is not None:
            time = _TIME.search(mark[2] or "")
            found[number] = (_role(mark[1]), said, time[0] if time is not None else None)
    return found


def _role(name: str) -> Role:
    known = role_of(name)
    if known is not None:
        return known
    return "assistant" if name.lower() in _PROGRAMS or name.lower().startswith("gpt") else "user"
