"""What every format of chat sessions implements, and what reading one gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.content import Content


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a file that should have been read as messages but could not be. The rest of the file is read."""

    place: str
    """where it stands: `line 12`, `item 3`"""
    detail: str
    """what is wrong with it, for a person"""


class Format(Protocol):
    """One way of writing chat sessions to a file."""

    name: str
    """`Transcript.format`"""

    def claims(self, content: Content) -> bool:
        """Whether the content is in this format; looks at its beginning only, and never at the file's name."""
        ...

    def sessions(self, content: Content) -> Iterator[Transcript | Unread]:
        """The sessions of a content that it claims, one at a time."""
        ...
