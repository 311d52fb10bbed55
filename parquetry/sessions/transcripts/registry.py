"""Registry of the formats of chat sessions, and reading of a file with format detection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.model import RawDocument
from parquetry.plural import counted
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.aider import Aider
from parquetry.sessions.transcripts.anthropic import AnthropicMessages
from parquetry.sessions.transcripts.base import Format, Unread
from parquetry.sessions.transcripts.bfcl import Bfcl
from parquetry.sessions.transcripts.chatgpt import ChatGpt
from parquetry.sessions.transcripts.claude_ai import ClaudeAi
from parquetry.sessions.transcripts.claude_code import ClaudeCode
from parquetry.sessions.transcripts.content import Content, read_content
from parquetry.sessions.transcripts.dialog_tables import DialogTables
from parquetry.sessions.transcripts.headings import HeadingLogs
from parquetry.sessions.transcripts.memorybank import MemoryBank
from parquetry.sessions.transcripts.openai import OpenAiMessages
from parquetry.sessions.transcripts.rows import Rows
from parquetry.sessions.transcripts.sharegpt import ShareGpt
from parquetry.sessions.transcripts.specstory import SpecStory
from parquetry.sessions.transcripts.swe_agent import SweAgent
from parquetry.sessions.transcripts.values import MOST_PROBLEMS

FORMATS: tuple[Format, ...] = (
    ClaudeCode(),
    ChatGpt(),
    ClaudeAi(),
    ShareGpt(),
    SweAgent(),
    Bfcl(),
    MemoryBank(),
    AnthropicMessages(),
    OpenAiMessages(),
    SpecStory(),
    Aider(),
    Rows(),
    DialogTables(),
    HeadingLogs(),
)
"""in order of detection, the most distinctive format first"""


def read_transcripts(raw: RawDocument) -> Iterator[Transcript | Unread]:
    """Yield the chat sessions of a file in any format.

    The content determines the format. Session names are unique within the file.

    Args:
        raw: the file.

    Returns:
        Sessions, each with at least one message of speech, interleaved with the parts of the file that could not be
        read.

    Raises:
        SkippedDocument: `empty`, or `no-session`: the file contains no chat session.
        BrokenDocument: `damaged` or `too-deep`; raised before the first session, unless the file is nested to the very
            limit.
    """
    try:
        content = read_content(raw)
        form = format_of(content)
        if form is None:
            raise SkippedDocument("no-session", "not in a known format of chat sessions")
        yield from _bounded(_sessions(form, content), content)
    except RecursionError as error:
        raise BrokenDocument("too-deep", "what is in it is nested too deeply to be read") from error


def format_of(content: Content) -> Format | None:
    """Return the format of a file; None if it contains no chat session."""
    return next((form for form in FORMATS if form.claims(content)), None)


def _sessions(form: Format, content: Content) -> Iterator[Transcript | Unread]:
    """Yield the results of a format under unique names, preceded by the lines that were left out."""
    for warning in content.replaced:
        yield Unread("the file", warning)
    for line, problem in content.values.problems if content.values is not None else ():
        yield Unread(f"line {line}", problem)
    taken: dict[str, int] = {}
    for found in form.sessions(content):
        yield replace(found, name=_unique(found.name, taken)) if isinstance(found, Transcript) else found
    if not taken:
        raise SkippedDocument("no-session", f"it is in the format `{form.name}`, but nobody says anything in it")


def _bounded(found: Iterator[Transcript | Unread], content: Content) -> Iterator[Transcript | Unread]:
    """Yield the results of a format, with only the first unreadable parts and the number of further ones."""
    told, more = 0, len(content.values.bad_lines) - len(content.values.problems) if content.values is not None else 0
    for one in found:
        if isinstance(one, Unread):
            if told == MOST_PROBLEMS:
                more += 1
                continue
            told += 1
        yield one
    if more:
        yield Unread("the file", f"{counted(more, 'more part of it', 'more parts of it')} could not be read")


def _unique(name: str, taken: dict[str, int]) -> str:
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name}.{taken[name]}" if name else str(taken[name])
    taken[found] = 1
    return found
