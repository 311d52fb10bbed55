"""Every path of a corpus. Pure: nothing here touches a disk."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from knowledge.errors import SettingsError

Table = Literal["documents", "texts", "chunks", "runs", "failures", "searches"]
TABLES: tuple[Table, ...] = ("texts", "chunks", "runs", "failures", "searches", "documents")
"""in the order of creation: a corpus exists once its `documents` table does"""

INDEX = "index"
"""name of the folder of the search index"""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tables of one corpus are.

    Args:
        root: absolute folder of the corpus.
    """

    root: str

    def table(self, table: Table) -> str:
        """Folder of a Delta table."""
        return posixpath.join(self.root, table)

    @property
    def index(self) -> str:
        """Folder of the search index, when it is kept beside the corpus."""
        return posixpath.join(self.root, INDEX)

    def shard(self, table: Table, name: str) -> str:
        """A Parquet file of a table."""
        return posixpath.join(self.root, table, name)


def layout_of(root: str) -> Layout:
    """The layout of the corpus at a folder or URL.

    Raises:
        SettingsError: no kind of place that a corpus can be kept in.
    """
    parts = urlsplit(root)
    if parts.scheme == "file":
        return Layout(unquote(parts.path))
    if "://" in root:
        raise SettingsError(
            f"corpus root {root}: a corpus is kept in a local folder; {parts.scheme}:// is not supported"
        )
    return Layout(str(Path(root).expanduser().resolve()))


def shard_name(run_id: str, batch: int) -> str:
    """Name of the shard that one batch of a run writes, unique to it."""
    return f"{run_id}-{batch:05d}.parquet"
