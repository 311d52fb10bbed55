"""Interface of the formats of chat sessions, and the results of reading one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.content import Content


@dataclass(frozen=True, slots=True)
class Unread:
    """Part of a file that could not be read as messages. The rest of the file is read."""

    place: str
    """position: `line 12`, `item 3`"""
    detail: str
    """description of the problem, for people"""


class Format(Protocol):
    """One file format of chat sessions."""

    name: str
    """`Transcript.format`"""

    def claims(self, content: Content) -> bool:
        """Return True if the content is in this format; checks only its beginning, never the file's name."""
        ...

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        """Yield the sessions of a content that the format claims."""
        ...
