"""MemoryBank: conversations with a companion, by person and day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.content import Content
from parquetry.sessions.transcripts.session import Origin, SessionBuilder, one_line


class MemoryBank:
    """An object of people, each with a `history` of days of `query` and `response` pairs: one session per day.

    Source: https://github.com/zhongwanjun/MemoryBank-SiliconFriend
    """

    name = "memorybank"

    def claims(self, content: Content) -> bool:
        return any(isinstance(value, dict) and any(map(_days, value.values())) for value in content.head)

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        for _, value in content.each():
            for person, about in value.items() if isinstance(value, dict) else ():
                person, days = one_line(person), _days(about)
                if not days:
                    yield Unread(f"person {person}", "no `history` of days with `query` and `response`")
                for day, exchanges in days.items():
                    day = one_line(day)
                    builder = SessionBuilder(self.name, f"{person}/{day}")
                    builder.note("person", person)
                    for number, exchange in enumerate(exchanges if isinstance(exchanges, list) else (), start=1):
                        if not _add(builder, exchange, day):
                            yield Unread(f"person {person}, {day}", f"exchange {number} has neither side")
                    if (session := builder.build()) is not None:
                        yield session


def _days(person: object) -> dict[str, Any]:
    days = person.get("history") if isinstance(person, dict) else None
    if not isinstance(days, dict):
        return {}
    first = next((exchanges for exchanges in days.values() if isinstance(exchanges, list) and exchanges), None)
    return days if first is not None and isinstance(first[0], dict) and "query" in first[0] else {}


def _add(builder: SessionBuilder, exchange: object, day: str) -> bool:
    if not isinstance(exchange, dict):
        return False
    query, response = exchange.get("query"), exchange.get("response")
    builder.add("user", query, origin=Origin(at=day))
    builder.add("assistant", response, origin=Origin(at=day))
    return isinstance(query, str) or isinstance(response, str)
