"""The reader of the newest version, replaced after each publish without a pause for those who read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from time import monotonic

from parquetry.embed.registry import embedder_behind
from parquetry.errors import ParquetryError, StorageError
from parquetry.serving.search.answer_cache import AnswerCache
from parquetry.serving.search.service import Ranking, Reader
from parquetry.settings.sections import Settings
from parquetry.storage.files.layout import layout_of
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import spaces_of
from parquetry.storage.index.vector_memory import vector_memories
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.newest import is_newest
from parquetry.storage.search.corpus_embedder import migrated_embedder

log = logging.getLogger("parquetry")
LOCAL_SECONDS = 0.1
"""seconds between two looks for a newer version of a local corpus"""
REMOTE_SECONDS = 1.0
"""seconds between two looks on an object store"""
START_SECONDS = 10.0
"""seconds that a request waits for the first version"""
INDEX_SECONDS = 5.0
"""seconds that the publishing run has to write the search index before this process does"""


class NotReady(StorageError):
    """Nothing can be answered yet: the corpus is empty, or its first index is being built."""


@dataclass
class _Held:
    """A reader and its users."""

    reader: Reader
    users: int = 0
    retired: bool = False


class CorpusFollower:
    """Keep a reader of the newest version open. Thread-safe.

    Args:
        settings: settings of the corpus.
        announce: called with each version from which on this process answers.
    """

    def __init__(self, settings: Settings, announce: Callable[[int], None] = lambda _: None) -> None:
        self._settings = settings
        self._announce = announce
        self._layout = layout_of(settings.corpus.root)
        self._memory = vector_memories() if settings.serve.vectors_in_memory else None
        self._cache = AnswerCache[Ranking](settings.search.cache_entries)
        self._held: _Held | None = None
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._told = ""
        self._announced: int | None = None
        self._thread = threading.Thread(target=self._follow, name="corpus-follower", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following; the reader is closed when its last user is done."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._replace(None)

    @property
    def version(self) -> int | None:
        """Version that is answered from; None before the first one."""
        held = self._held
        return None if held is None else held.reader.snapshot.version

    @property
    def problem(self) -> str:
        """Reason for which the newest version cannot be read; empty if it can."""
        return self._told

    @contextmanager
    def reader(self, wait: float = START_SECONDS) -> Iterator[Reader]:
        """Yield the reader of the newest version; it stays open for the block, whatever is published meanwhile.

        Args:
            wait: seconds to wait for the first version.

        Raises:
            NotReady: there is none in time.
        """
        held = self._acquire(wait)
        try:
            yield held.reader
        finally:
            self._release(held)

    def _acquire(self, wait: float) -> _Held:
        with self._changed:
            self._changed.wait_for(lambda: self._held is not None, wait)
            held = self._held
            if held is None:
                raise NotReady(self._told or "nothing is published in this corpus yet, or it is being indexed")
            held.users += 1
            return held

    def _release(self, held: _Held) -> None:
        with self._changed:
            held.users -= 1
            unused = held.retired and not held.users
        if unused:
            held.reader.close()

    def _replace(self, reader: Reader | None) -> None:
        with self._changed:
            old, self._held = self._held, None if reader is None else _Held(reader)
            self._changed.notify_all()
            if old is not None:
                old.retired = True
            unused = old is not None and not old.users
        if old is not None and unused:
            old.reader.close()

    # --- following, in a thread of its own

    def _follow(self) -> None:
        pause = LOCAL_SECONDS if self._layout.is_local else REMOTE_SECONDS
        while not self._stopping.is_set():
            try:
                if self._announced is None:
                    # Before the first look: a write that is published during it has to wait for this process, too.
                    self._announced = 0
                    with suppress(OSError, StorageError):
                        self._announce(0)
                self._look()
                self._tell_followed()
                self._told = ""
            except Exception as error:  # noqa: BLE001 - the edge of a look
                # The edge of a look: whatever it runs into, the version before goes on answering, and the next look
                # tries again. A thread that ended would leave the service at an old version without a word.
                told = str(error) if isinstance(error, ParquetryError | OSError) else f"{type(error).__name__}: {error}"
                if told != self._told:
                    log.warning("the newest version cannot be followed: %s", told)
                self._told = told
            self._stopping.wait(pause)

    def _look(self) -> None:
        version = self.version
        if version is not None and is_newest(self._layout, version):
            return
        if not Lake.exists(self._settings.corpus.root):
            self._replace(None)
            return
        snapshot = Lake(self._settings.corpus.root).snapshot()
        if not snapshot.version or snapshot.version == version:
            return
        self._await_index(snapshot.version)
        reader = Reader(self._settings, cache=self._cache, memory=self._memory)
        with ExitStack() as unfinished:
            unfinished.callback(reader.close)
            self._warm(reader)
            unfinished.pop_all()
        self._replace(reader)

    def _tell_followed(self) -> None:
        """Announce the version that is answered from, until that has succeeded: writes wait for it."""
        version = self.version
        if version is not None and version != self._announced:
            self._announce(version)
            self._announced = version

    def _await_index(self, version: int) -> None:
        """Give the run that published time to write the index, so that not every process builds it."""
        folder = IndexFolder(self._layout, self._settings.search)
        deadline = monotonic() + INDEX_SECONDS
        while monotonic() < deadline and not self._stopping.wait(0.02):
            newest = folder.newest()
            if newest is not None and newest.version >= version:
                return

    def _warm(self, reader: Reader) -> None:
        """Open the index, and load what the first search would wait for; ask no service."""
        index = reader.index
        if self._memory is not None:
            self._memory.of(index)
        local = [name for name in self._settings.embedders if not name.startswith("openai:")]
        with closing(index.session()) as session:
            for space in spaces_of(session):
                embedder = embedder_behind(space.embedder, local, self._settings.embedding, self._settings.hub)
                if embedder is None:
                    # A version whose queries cannot be embedded here is not followed.
                    embedder = migrated_embedder(space.embedder, self._settings, local=True)
                if embedder is not None:
                    embedder.embed_query("warm")
