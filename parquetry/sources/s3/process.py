"""A process that reads small objects for the sources of this one.

Half of what a small object of S3 costs a run is its request. Another process makes requests while this one hands over,
embeds and stores what came before. It parses no document, so it may have credentials.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from parquetry.errors import ParquetryError

if TYPE_CHECKING:
    from parquetry.sources.s3.reading import Read

log = logging.getLogger("parquetry")
_LINES = 16
"""concurrent reads, as many as there are fetches from one service; further ones are left to the callers"""
_MODULE = "parquetry.sources.s3.process_main"
_numbers = count()
_lock = threading.Lock()
_shared: weakref.ref[ObjectProcess] | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket and the way to it, which the process is told once."""

    name: str
    options: Mapping[str, Any] = field(repr=False)
    """of `s3fs.S3FileSystem`"""
    number: int = field(default_factory=lambda: next(_numbers))
    """unique in this program"""


class ObjectProcess:
    """A process that reads objects of any bucket. Thread-safe; ends with its last user."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in range(_LINES)]
        theirs = [other.fileno() for _, other in pairs]
        try:
            process = subprocess.Popen(
                # Modules of the working folder are none of ours.
                [sys.executable, "-P", "-m", _MODULE, *map(str, theirs)],
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # An interrupt at the terminal is for the run.
                process_group=0,
            )
        except OSError:
            for ours, _ in pairs:
                ours.close()
            raise
        finally:
            for _, other in pairs:
                other.close()
        self._free = [_Line(Connection(ours.detach())) for ours, _ in pairs]
        self._first = self._free[0].connection
        self._guard = threading.RLock()
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self._is_ready = False
        self.is_lost = False
        """True once it has ended"""
        self._end = weakref.finalize(self, _end, process)

    def read(self, bucket: Bucket, key: str, size: int) -> Read | None:
        """Read one object.

        Args:
            bucket: its bucket.
            key: its key.
            size: size in bytes, as listed.

        Returns:
            What was read; None if the process does not answer (yet), so that the caller has to read the object itself.

        Raises:
            Exception: as `ObjectReader.read`.
        """
        line = self._take()
        if line is None:
            return None
        try:
            found = line.ask(bucket, key, size)
        except (OSError, EOFError):
            self._lose()
            return None
        with self._guard:
            self._free.append(line)
        if isinstance(found, ParquetryError):
            # Made anew, which masks the secrets that only this process knows.
            raise type(found)(*found.args)
        if isinstance(found, Exception):
            raise found
        return found

    def join(self, user: object) -> None:
        """Count a user; called by `object_process`."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        """End the process if nobody else uses it; reads under way are left to their callers."""
        with _lock:
            self._users.discard(user)
            if not self._users:
                self.is_lost = True
                self._end()

    def _take(self) -> _Line | None:
        with self._guard:
            if self.is_lost or not (self._is_ready or self._has_begun()):
                return None
            return self._free.pop() if self._free else None

    def _has_begun(self) -> bool:
        """Return True once the process has imported what it needs."""
        try:
            self._is_ready = self._first.poll() and self._first.recv()
        except (OSError, EOFError):
            self._lose()
        return self._is_ready

    def _lose(self) -> None:
        with self._guard:
            if not self.is_lost:
                self.is_lost = True
                log.warning("the process that reads objects of S3 has ended; the run goes on without it, more slowly")


class _Line:
    """A connection to the process, for one read at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._told: set[int] = set()
        """numbers of the buckets that the process knows from this line"""

    def ask(self, bucket: Bucket, key: str, size: int) -> Read | Exception | None:
        told = None if bucket.number in self._told else (bucket.name, dict(bucket.options))
        self.connection.send((bucket.number, told, key, size))
        self._told.add(bucket.number)
        found: Read | Exception | None = self.connection.recv()
        return found


def object_process(user: object) -> ObjectProcess | None:
    """Return the process of this program, started if there is none; None if the system does not allow one.

    Args:
        user: who reads with it until it says `leave`, or is gone.
    """
    global _shared
    if os.name != "posix" or (os.cpu_count() or 1) == 1:
        return None
    with _lock:
        process = None if _shared is None else _shared()
        if process is None or process.is_lost:
            try:
                process = ObjectProcess()
            except OSError as error:
                log.warning("objects of S3 are read without a process of their own, more slowly: %s", error)
                return None
            _shared = weakref.ref(process)
        process.join(user)
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    # Nothing is killed by a fork of this program, which the process is no child of.
    process.kill()
    process.wait()
