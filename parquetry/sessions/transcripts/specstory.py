"""SpecStory's Markdown history of coding agents: `_**User (2026-01-12 15:08:38Z)**_` followed by the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.harness import add_user_text
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, one_line

_MARK = re.compile(r"^_\*\*(User|Agent|Assistant)( - sidechain)?(?: \(([^\n]*)\))?\*\*_[ \t]*$")
_SESSION = re.compile(r"^<!-- ([\w. -]{1,60}?) Session (\S{1,100})(?: \(([^)\n]*)\))? -->[ \t]*$")
_TITLE = re.compile(r"^#{1,2} (.+)$")
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)$")
_BLOCKS = ((re.compile(r"^<tool-use\b([^\n>]*)>"), "</tool-use>"), (re.compile(r"^<think>"), "</think>"))
_TOOL = re.compile(r'data-tool-name="([^"\n]{1,100})"')
_OPENING = re.compile(r"<(?:tool-use|think)\b[^>]*>\s*(?:<details>\s*)?")
_SUMMARY, _SUMMARY_END = "<summary>", "</summary>"
_KIND = re.compile(r"Thought Process|Tool use: \*\*[^*\n]*\*\*")
_CLOSING = re.compile(r"(?:</details>\s*)?</(?:tool-use|think)>\s*$")
_FENCE = re.compile(r"^```", re.MULTILINE)
_CLAIM_LINES = 400


class SpecStory:
    """A file of one session, or of several under their comments. Messages between agents are left out.

    Source: https://docs.specstory.com
    """

    name = "specstory"

    def claims(self, content: Content) -> bool:
        if content.values is not None:
            return False
        return any(_MARK.match(line) for line in content.text.split("\n", _CLAIM_LINES)[:_CLAIM_LINES])

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        lines = content.text.split("\n")
        covered = _covered(lines)
        builder = SessionBuilder(self.name)
        mark: re.Match[str] | None = None
        body: list[str] = []
        for number, line in enumerate(lines):
            found = None if covered[number] else _MARK.match(line) or _SESSION.match(line)
            if found is None:
                if mark is None and builder.title is None and (title := _TITLE.match(line)) is not None:
                    builder.title = None if _TIME.search(title[1]) else one_line(title[1])
                body.append(line)
                continue
            _add(builder, mark, body)
            body, mark = [], found if found.re is _MARK else None
            if found.re is _SESSION:
                if (session := builder.build()) is not None:
                    yield session
                builder = SessionBuilder(self.name, found[2], builder.title)
                builder.note("agent", found[1])
        _add(builder, mark, body)
        if (session := builder.build()) is not None:
            yield session


def _covered(lines: list[str]) -> list[bool]:
    """Return True for each line in a tool use or a thought: no mark counts there.

    Code blocks in speech cover nothing: an unclosed one would turn everything after it inside out.
    """
    covered: list[bool] = []
    for end, block in _split(lines):
        covered += [end != ""] * len(block)
    return covered


def _add(builder: SessionBuilder, mark: re.Match[str] | None, body: list[str]) -> None:
    """Append the text under a mark."""
    if mark is None or mark[2]:
        return
    time = _TIME.search(mark[3] or "")
    origin = Origin(at=time[1] if time is not None else None)
    while body and body[-1].strip() in ("", "---"):
        body.pop()
    if mark[1] == "User":
        add_user_text(builder, "\n".join(body), origin)
        return
    builder.note("model", mark[3][: time.start()].strip() if time is not None else mark[3])
    said: list[str] = []
    for block, lines in _split(body):
        if block == "":
            said += lines
            continue
        builder.add("assistant", "\n".join(said), origin=origin)
        said = []
        _add_block(builder, lines, origin, thought=block == "</think>")
    builder.add("assistant", "\n".join(said), origin=origin)


def _split(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of an answer: single lines of speech with an empty string, and blocks with their closing mark."""
    missing: set[str] = set()
    number = 0
    while number < len(body):
        end = next((end for start, end in _BLOCKS if end not in missing and start.match(body[number])), "")
        last = number
        while end and last < len(body) and not body[last].rstrip().endswith(end):
            last += 1
        if last == len(body):
            # No later block will be closed either: it only looked like a block, and is speech.
            missing.add(end)
            continue
        yield end, body[number : last + 1]
        number = last + 1


def _add_block(builder: SessionBuilder, lines: list[str], origin: Origin, *, thought: bool) -> None:
    text = _without_summary(_CLOSING.sub("", "\n".join(lines)))
    if thought:
        builder.add("assistant", text, origin=origin, kind="thinking")
        return
    found = _TOOL.search(lines[0])
    tool = found[1] if found is not None else None
    # The request to the tool stands before the code block with the result; it may contain code itself.
    returned = _first_fence(text)
    builder.add("assistant", text[:returned] or "()", origin=origin, kind="tool_call", tool=tool)
    if returned is not None:
        builder.add("tool", text[returned:], origin=origin, kind="tool_result", tool=tool)


def _first_fence(text: str) -> int | None:
    """Return the offset of the first line that opens a code block; None if there is none."""
    signs = last = 0
    for fence in _FENCE.finditer(text):
        signs += text.count("```", last, fence.start())
        last = fence.start()
        if signs % 2 == 0:
            return last
    return None


def _without_summary(block: str) -> str:
    """Return the content of a block, with its summary except for the kind of block."""
    opening = _OPENING.match(block)
    if opening is None:
        return block.strip()
    text = block[opening.end() :]
    said, closed, rest = text.partition(_SUMMARY_END) if text.startswith(_SUMMARY) else ("", "", "")
    if not closed:
        return text.strip()
    said = said.removeprefix(_SUMMARY)
    kind = _KIND.match(said)
    said = said[kind.end() :] if kind is not None else said
    return f"{said.strip()}\n{rest}".strip()
