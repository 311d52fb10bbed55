"""Sessions that wait for their turn are kept in a file without a name, so that memory holds only those in work."""

from __future__ import annotations

import pickle
import tempfile
import threading
from dataclasses import dataclass

from parquetry.sessions.model import Transcript


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a session is in the spool."""

    offset: int
    """bytes from the beginning"""
    size: int
    """bytes"""


class Spool:
    """A file of sessions that is gone when its process ends, however that comes. Used from several threads."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="parquetry-sessions-")  # noqa: SIM115 - closed by `close`
        self._end = 0
        self._lock = threading.Lock()

    def keep(self, transcript: Transcript) -> Kept:
        """Put a session aside."""
        content = pickle.dumps(transcript, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._file.seek(self._end)
            self._file.write(content)
            kept = Kept(self._end, len(content))
            self._end += len(content)
            return kept

    def read(self, kept: Kept) -> Transcript:
        """A session that was put aside."""
        with self._lock:
            self._file.seek(kept.offset)
            content = self._file.read(kept.size)
        found = pickle.loads(content)  # noqa: S301 - written by this process into a file that nobody else can open
        if not isinstance(found, Transcript):
            raise TypeError(f"{type(found).__name__} in the spool of sessions")
        return found

    def close(self) -> None:
        self._file.close()
