"""Messages as rows, in CSV or JSON: one column for the speaker and one for the text, whatever their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parquetry.extract.delimited import read_rows
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.dialogs import add_message, is_message, says
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, one_line, role_of

_SPEAKER = ("role", "speaker", "from", "author", "sender", "participant", "user", "name")
_TEXT = ("content", "text", "message", "value", "body", "utterance")
_SESSION = (
    "sessionid", "session", "conversationid", "conversation", "chatid", "chat", "threadid", "thread", "dialogid",
    "dialogueid",
)  # fmt: skip
_TIME = ("timestamp", "time", "createdat", "date", "datetime", "sentat", "ts", "at")
_ID = ("messageid", "id", "uuid")
_VAGUE = ("user", "name", "value")
"""ambiguous column names: accepted only if one of their values is a user or an assistant"""
_WORD = re.compile(r"[^a-z0-9]")
_HEAD_CHARACTERS = 20_000
_TOOLS = ("tool", "toolname")
_KNOWN = frozenset((*_SPEAKER, *_TEXT, *_SESSION, *_TIME, *_ID, *_TOOLS))


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a table by content."""

    speaker: str
    text: str
    session: str | None
    time: str | None
    id: str | None
    tool: str | None


class Rows:
    """CSV with a header, JSON Lines of flat objects, or a list of them.

    If a column names the session, rows with one name form one session. A speaker whose name is not a role (`Alice`)
    counts as a user, and the name is put before the text.
    """

    name = "rows"

    def claims(self, content: Content) -> bool:
        if content.values is None:
            return header_columns(content) is not None
        return _columns_of(content.head) is not None

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        rows: Iterable[tuple[str, object]] = content.each()
        columns = _columns_of(content.head) if content.values is not None else header_columns(content)
        if columns is None:
            return
        if content.values is None:
            rows, problems = table_rows(content)
            yield from problems
        missing = f"no `{one_line(columns.speaker)}` or no `{one_line(columns.text)}`"
        builders: dict[str, SessionBuilder] = {}
        for place, row in rows:
            session = _cell(row, columns.session)
            builder = builders.setdefault(session, SessionBuilder(self.name, session))
            if not _add(builder, row, columns):
                yield Unread(place, missing)
        for builder in builders.values():
            if (found := builder.build()) is not None:
                yield found


def first_rows(content: Content) -> list[list[str]]:
    """Return the header of a delimited text and its first rows; none if it has a single column or is JSON."""
    if content.values is not None:
        return []
    rows, _ = read_rows(content.text[:_HEAD_CHARACTERS])
    return rows if rows and len(rows[0]) > 1 else []


def table_rows(content: Content) -> tuple[Iterator[tuple[str, object]], list[Unread]]:
    """Return the rows of a delimited text as objects with their positions, and the irregularities found."""
    (header, *rows), problems = read_rows(content.text)
    # A row may be shorter than the header, or longer.
    named = ((f"row {number}", dict(zip(header, row, strict=False))) for number, row in enumerate(rows, start=2))
    return named, [Unread("the table", problem) for problem in problems]


def header_columns(content: Content) -> Columns | None:
    """Return the columns of a delimited text by content; None if it is not a table of messages."""
    header, *rows = first_rows(content) or [[]]
    return _columns(header, [dict(zip(header, row, strict=False)) for row in rows])


def _columns_of(values: Iterable[object]) -> Columns | None:
    """Return the columns by the keys of objects; None if these are not rows of messages, or are in another format."""
    rows = [value for value in values if isinstance(value, dict)]
    if not rows or any(is_message(row) for row in rows):
        return None
    columns = _columns((key for row in rows for key in row), rows)
    if columns is None or not any(
        _cell(row, columns.speaker) and (_cell(row, columns.text) or says(row)) for row in rows
    ):
        return None
    return columns


def _columns(names: Iterable[str], rows: Sequence[Mapping[str, object]]) -> Columns | None:
    by_word: dict[str, str] = {}
    for name in names:
        word = _WORD.sub("", name.lower())
        if word in _KNOWN:
            by_word.setdefault(word, name)

    def first(words: tuple[str, ...]) -> str | None:
        return next((by_word[word] for word in words if word in by_word), None)

    speaker, text = first(_SPEAKER), first(_TEXT)
    if speaker is None or text is None:
        return None
    vague = any(_WORD.sub("", name.lower()) in _VAGUE for name in (speaker, text))
    if vague and not any(role_of(row.get(speaker)) for row in rows):
        return None
    return Columns(speaker, text, first(_SESSION), first(_TIME), first(_ID), first(_TOOLS))


def _cell(row: object, column: str | None) -> str:
    value = row.get(column) if isinstance(row, dict) and column is not None else None
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _add(builder: SessionBuilder, row: object, columns: Columns) -> bool:
    speaker, text = _cell(row, columns.speaker), _cell(row, columns.text)
    if not text and says(row):
        return add_message(builder, row)
    if not speaker or not isinstance(row, dict) or columns.text not in row:
        return False
    role = role_of(speaker)
    if role is None:
        role, text = "user", f"{speaker}: {text}" if text else ""
    builder.add(
        role,
        text,
        kind="tool_result" if role == "tool" else "speech",
        origin=Origin(_cell(row, columns.id) or None, _cell(row, columns.time)),
        tool=_cell(row, columns.tool) or None if role == "tool" else None,
    )
    return True
