"""Sessions that wait for their turn, in an anonymous temporary file, so that memory holds only those in work."""

from __future__ import annotations

import pickle
import tempfile
import threading
from dataclasses import dataclass

from parquetry.sessions.model import Transcript


@dataclass(frozen=True, slots=True)
class Spooled:
    """The location of a session in the spool."""

    offset: int
    """offset in bytes"""
    size: int
    """bytes"""


class Spool:
    """A file of sessions that disappears when its process ends in any way. Used from several threads."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="parquetry-sessions-")  # noqa: SIM115 - closed by `close`
        self._end = 0
        self._lock = threading.Lock()

    def keep(self, transcript: Transcript) -> Spooled:
        """Write a session to the spool."""
        content = pickle.dumps(transcript, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._file.seek(self._end)
            self._file.write(content)
            kept = Spooled(self._end, len(content))
            self._end += len(content)
            return kept

    def read(self, kept: Spooled) -> Transcript:
        """Read a session from the spool."""
        with self._lock:
            self._file.seek(kept.offset)
            content = self._file.read(kept.size)
        found = pickle.loads(content)  # noqa: S301 - written by this process into a file that only it can open
        if not isinstance(found, Transcript):
            raise TypeError(f"{type(found).__name__} in the spool of sessions")
        return found

    def close(self) -> None:
        self._file.close()
