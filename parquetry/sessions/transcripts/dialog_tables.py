"""Tables with a whole chat in each row, as in Synthetic-Persona-Chat: one `User 1: Hi!` per line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.rows import first_rows, table_rows
from parquetry.sessions.transcripts.session import SessionBuilder, one_line, role_of

_COLUMN = re.compile(r"\b(?:conversation|dialog|dialogue|chat|transcript)\b", re.IGNORECASE)
_LINE = re.compile(r"^[ \t]*(?:\*{1,2}[ \t]?)?([A-Z][\w.-]{0,30}(?: [\w.-]{1,20}){0,2}):[ \t]*", re.MULTILINE)
_SIGNS = 2
"""minimum lines with a speaker in a chat"""


class DialogTables:
    """A delimited table with a column of conversations; the row's number is the session's name.

    Speakers named neither as user nor as assistant count as users, and keep their names before their text.

    Source: https://github.com/google-research-datasets/Synthetic-Persona-Chat
    """

    name = "dialog-table"

    def claims(self, content: Content) -> bool:
        return _column(content) is not None

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        column = _column(content)
        missing = f"no conversation in `{one_line(column or '')}`"
        rows, problems = table_rows(content)
        yield from problems
        for number, (place, row) in enumerate(rows, start=1):
            text = row.get(column) if isinstance(row, dict) and column is not None else None
            builder = SessionBuilder(self.name, str(number))
            if isinstance(text, str):
                _add_lines(builder, text)
            if (session := builder.build()) is not None:
                yield session
            else:
                yield Unread(place, missing)


def _column(content: Content) -> str | None:
    """Return the column with the name and first cells of a column of conversations."""
    header, *rows = first_rows(content) or [[]]
    for place, name in enumerate(header):
        if _COLUMN.search(name) and any(len(_LINE.findall(row[place])) >= _SIGNS for row in rows if len(row) > place):
            return name
    return None


def _add_lines(builder: SessionBuilder, text: str) -> None:
    marks = list(_LINE.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        said, role = text[mark.end() : end].strip(" *\n"), role_of(mark[1])
        builder.add(role or "user", said if role is not None or not said else f"{mark[1]}: {said}")
