"""Chat history of aider, `.aider.chat.history.md`: consecutive sessions, with the user's lines as headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.fences import in_code
from parquetry.sessions.transcripts.session import Origin, SessionBuilder

_START = re.compile(r"^# aider chat started at (.+)$")
_USER = re.compile(r"^####(?: |$)")
_COMMAND = re.compile(r"[/!](\w[\w-]*)")
_CLAIM_LINES = 200


class Aider:
    """Sessions begin with `# aider chat started at`; `#### ` marks the user, `> ` the program; the rest is the model.

    Source: https://aider.chat/docs/config/options.html
    """

    name = "aider"

    def claims(self, content: Content) -> bool:
        if content.values is not None:
            return False
        return any(_START.match(line) for line in content.text.split("\n", _CLAIM_LINES)[:_CLAIM_LINES])

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        lines = content.text.split("\n")
        starts = [number for number, line in enumerate(lines) if _START.match(line)]
        for first, following in pairwise([*starts, len(lines)]):
            started = _START.match(lines[first])
            builder = SessionBuilder(self.name, started[1].rstrip(" \t") if started is not None else "")
            _add_lines(builder, lines[first + 1 : following], builder.name)
            if (session := builder.build()) is not None:
                yield session


def _add_lines(builder: SessionBuilder, lines: list[str], started: str) -> None:
    """Append the lines of one session, joining consecutive lines of one speaker."""
    code = in_code(lines)
    speaker = "model"
    said: list[str] = []
    for number, line in enumerate(lines):
        current = "model"
        if not code[number]:
            if _USER.match(line):
                current, line = "user", line[4:].strip()
            elif line.startswith(">"):
                current, line = "program", line[1:].strip()
            elif not line.strip() and speaker == "program":
                current = "program"
        if current != speaker:
            _add(builder, speaker, said, started)
            speaker, said = current, []
        said.append(line)
    _add(builder, speaker, said, started)


def _add(builder: SessionBuilder, speaker: str, said: list[str], started: str) -> None:
    text = "\n".join(said).strip()
    origin = Origin(at=started)
    if speaker == "user" and (command := _COMMAND.match(text)) is not None:
        rest = text[command.end() :].strip()
        builder.add("user", rest or "()", kind="tool_call", origin=origin, tool=command[0])
    elif speaker == "user":
        builder.add("user", text, origin=origin)
    elif speaker == "program":
        builder.add("tool", text, kind="tool_result", origin=origin, tool="aider")
    else:
        builder.add("assistant", text, origin=origin)
