"""Tells which shards of a table still are what was written."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from posixpath import basename

from storage.commits import recorded_hashes
from storage.layout import Layout, Table
from storage.places import sha256_of
from storage.shards import faulty_columns, is_whole


class Trust:
    """Compares shards with the checksums in their commits, each once. Safe to use from several threads.

    Files of object stores are trusted: these check what they keep, and reading a file again would cost as much as using
    it.

    Args:
        layout: of the corpus.
        table: whose shards they are.
    """

    def __init__(self, layout: Layout, table: Table) -> None:
        self._layout, self._table = layout, table
        self._lock = threading.Lock()
        self._known: dict[str, bool] = {}

    def add(self, file: str) -> None:
        """Take a file for good that was written just now."""
        with self._lock:
            self._known[file] = True

    def changed(self, files: Iterable[str]) -> list[str]:
        """Those of some files that are missing, unreadable, or not what was written.

        Raises:
            DamagedCorpus, DeltaError, OSError: the log of the table cannot be read.
        """
        named = sorted(set(files))
        if not self._layout.is_local:
            return [file for file in named if not self._known.get(file) and not is_whole(file)]
        with self._lock:
            self._look_at([file for file in named if file not in self._known])
            return [file for file in named if not self._known[file]]

    def _look_at(self, files: Sequence[str]) -> None:
        if not files:
            return
        wanted = recorded_hashes(self._layout, self._table, {basename(file) for file in files})
        for file in files:
            digest = wanted.get(basename(file))
            whole = is_whole(file)
            # What crashed runs left behind is in no commit; earlier programs wrote no checksums.
            self._known[file] = whole and (sha256_of(file) == digest if digest else not faulty_columns(file))
