"""Which formats of chat sessions there are, and reading a file in whichever it is."""

from __future__ import annotations

from collections.abc import Iterator

from knowledge.model import RawDocument
from knowledge.sessions.model import Transcript
from knowledge.sessions.transcripts.base import Format, Unread

FORMATS: tuple[Format, ...] = ()


def read_transcripts(raw: RawDocument) -> Iterator[Transcript | Unread]:
    """The chat sessions of a file in any format, one at a time.

    The format is told by the content. Names of sessions are unique within the file.

    Args:
        raw: the file.

    Returns:
        Sessions, each with at least one message, and between them what of the file could not be read.

    Raises:
        SkippedDocument: `empty`, or `no-session`: there is no chat session in it.
        BrokenDocument: `damaged`, before the first session is given.
    """
    raise NotImplementedError(raw.filename)
