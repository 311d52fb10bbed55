"""Messages of chat sessions that a decision rests on, read again from the files on this machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from parquetry.errors import ParquetryError
from parquetry.model import RawDocument
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.registry import read_transcripts
from parquetry.settings.sections import Settings
from parquetry.sources.local.source import is_local, local_path

MOST_BYTES = 4 * 1024 * 1024
"""bytes of a file that is read for a page"""
_LONGEST = 1_500
"""characters of a message that a page shows"""
_READ = frozenset({".json", ".jsonl", ".md", ".txt"})
"""endings of files that are read for a page: not archives, which unpack"""


@dataclass(frozen=True, slots=True)
class CitedMessage:
    """A message that a decision rests on."""

    id: str
    role: str
    text: str
    cut: bool
    """True if the message is longer"""


def cited_messages(settings: Settings, inbox: Path, session_uri: str, ids: Collection[str]) -> list[CitedMessage]:
    """Return messages of a session as they are now; none if its file is elsewhere, large, changed or gone.

    Only files of the configured sources of sessions are read, and those that were handed in.

    Args:
        settings: settings with the sources.
        inbox: folder of the sessions that were handed in.
        session_uri: file of the session, with `#` and its name if the file holds several.
        ids: ids of the messages.
    """
    address, _, name = session_uri.partition("#")
    try:
        file = _file(settings, inbox, address)
        if file is None or not ids:
            return []
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            return []
        found = read_transcripts(RawDocument(content, file.name))
        session = next((each for each in found if isinstance(each, Transcript) and each.name == name), None)
    except (ParquetryError, OSError, ValueError):
        # The decision has the uri and the ids: what cannot be read again is named there.
        return []
    return [] if session is None else _chosen(session, ids)


def _chosen(session: Transcript, ids: Collection[str]) -> list[CitedMessage]:
    return [
        CitedMessage(each.id, each.role, each.text[:_LONGEST], len(each.text) > _LONGEST)
        for each in session.messages
        if each.id in ids
    ]


def _file(settings: Settings, inbox: Path, address: str) -> Path | None:
    """Return the file of an address; None if it is no file in one of the folders that sessions come from."""
    parts = urlsplit(address)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return None
    file = Path(unquote(parts.path)).resolve()
    folders = [inbox.resolve(), *_folders(settings)]
    within = any(file.is_relative_to(folder) for folder in folders)
    return file if within and file.suffix.lower() in _READ and file.is_file() else None


def _folders(settings: Settings) -> Sequence[Path]:
    sources = (each.uri for each in settings.source if each.content == "sessions")
    return [local_path(uri).resolve() for uri in sources if is_local(uri)]
