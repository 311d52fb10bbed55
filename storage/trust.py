"""Tells which shards of a table still are what was written."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from storage.damage import faults_in
from storage.layout import Layout, Table


class Trust:
    """Compares shards with the checksums in their commits, each once. Safe to use from several threads.

    Files of object stores have to be whole and no more: these check what they keep, and reading a file again would cost
    as much as using it.

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
        """Those of some files that are missing, unreadable, or not what was written."""
        named = sorted(set(files))
        with self._lock:
            unknown = [file for file in named if file not in self._known]
            faulty = {file for file, _ in faults_in(self._layout, self._table, unknown)}
            self._known |= {file: file not in faulty for file in unknown}
            return [file for file in named if not self._known[file]]
