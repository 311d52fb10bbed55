"""Read only the intact shards of a table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

import duckdb
import pyarrow as pa

from parquetry.errors import FilesGaveWay, StorageError
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.damage import faults_in

log = logging.getLogger("parquetry")
FILE = "file"
"""result column with the shard that a row is from"""


class Trust:
    """Compare shards with the checksums in their commits, each once. Safe to use from several threads.

    Files of object stores only have to be complete: the stores check their content, and reading a file again would cost
    as much as using it.

    Args:
        layout: layout of the corpus; None if there is none yet, so that all shards are added ones.
        table: table of the shards.
    """

    def __init__(self, layout: Layout | None, table: Table) -> None:
        self._layout, self._table = layout, table
        self._lock = threading.Lock()
        self._known: dict[str, bool] = {}
        self._left_out: set[str] = set()

    def add(self, file: str) -> None:
        """Trust a file that has just been written."""
        with self._lock:
            self._known[file] = True

    def changed(self, files: Iterable[str]) -> list[str]:
        """Return the missing, unreadable or changed files among the given ones."""
        named = sorted(set(files))
        with self._lock:
            unknown = [file for file in named if file not in self._known]
            found = faults_in(self._layout, self._table, unknown) if self._layout else ()
            faulty = {file for file, _ in found}
            self._known |= {file: file not in faulty for file in unknown}
            return [file for file in named if not self._known[file]]

    def read(self, shards: Iterable[str], query: Callable[[Sequence[str]], pa.Table]) -> pa.Table | None:
        """Run a query over the intact shards; the others are named in a warning.

        Only shards that contribute to the result are compared, or all of them if the query fails.

        Args:
            shards: shards to query.
            query: queries some of them; each row of its result has a `FILE`.

        Returns:
            The result; None if no shard is left to query.

        Raises:
            FilesGaveWay: another run has replaced a shard since it was listed.
            StorageError: the query fails, and no shard is the cause.
        """
        known = tuple(dict.fromkeys(shards))
        while files := [file for file in known if file not in self._left_out]:
            try:
                found = query(files)
            except FilesGaveWay:
                raise
            except (StorageError, duckdb.Error):
                if not self._leave_out(files):
                    raise
                continue
            # Without PyArrow's own functions, whose import takes longer than the rest of a small refresh here.
            if not self._leave_out(sorted(set(found.column(FILE).to_pylist()))):
                return found
        return None

    def _leave_out(self, files: Sequence[str]) -> bool:
        """Exclude the damaged ones of the given files from now on; True if there are any."""
        changed = self.changed(files)
        for file in changed:
            if file not in self._left_out:
                self._left_out.add(file)
                log.warning("%s is damaged and is not used; `parquetry doctor --fix` repairs it", file)
        return bool(changed)
