"""Every path of a corpus. Pure: nothing here touches a disk or a network."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal
from urllib.parse import unquote, urlsplit

from parquetry.errors import SettingsError
from parquetry.settings.home import expanded

Table = Literal[
    "documents",
    "texts",
    "chunks",
    "notes",
    "entries",
    "decisions",
    "runs",
    "failures",
    "searches",
    "retention",
    "migrations",
]
Version = int | str
"""number of a version of `documents`, or one of its tags"""
TABLES: tuple[Table, ...] = (
    *("texts", "chunks", "notes", "entries", "decisions", "runs", "failures", "searches", "documents"),
)
"""tables in the order of creation: a corpus exists once its `documents` table does; `retention` is made by its first
tag or compaction, `migrations` by its first migration"""
LATER: frozenset[Table] = frozenset({"notes", "entries", "decisions", "searches"})
"""tables that a corpus written by an earlier program lacks until it is written to"""
WIDENED: frozenset[Table] = frozenset({"runs"})
"""tables whose shards of an earlier program lack columns at the end"""
SCHEMA_VERSION = 1
"""incremented when an older program would misread the tables; stored in the description of `documents`"""

ANSWERS = "answers"
"""name of the folder of language-model answers"""

LOG = "_delta_log"
"""name of the folder of the commits in the folder of a Delta table"""

BATCHES = "batches"
"""name of the folder with the record of batches at services"""

ORDERS = "orders"
"""name of the folder of orders for workers"""

INDEX = "index"
"""name of the folder of the search index"""
STAGING = "staging"
"""name of the folder in which commits to local tables are tested before they take effect"""
PROBE = "conditional-writes"
"""name of the object beside the tables that records whether its store honours conditional writes"""

UPLOADS = "uploads"
"""name of the folder of documents that were handed in, unless they are kept elsewhere"""
SERVICE = "service"
"""name of the folder of the service's state, unless it is kept elsewhere"""

SCHEMES: Mapping[str, str] = MappingProxyType(
    {"s3": "s3", "s3a": "s3", "abfs": "abfs", "abfss": "abfs", "az": "abfs", "gs": "gs", "gcs": "gs"}
)
"""URL schemes of object stores, each with the canonical one of its kind"""
_COMPACTED_MARK = "-compacted"
_ENTRIES_MARK = "-entries-"
_RUN_ID = re.compile(r"(\d{8}T\d{6})-[0-9a-f]{8}")
_MISREAD = re.compile(r"[?#%*\[\]{}\\@\s]")
"""characters that some reader of a URL interprets as something else"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The locations of the tables of one corpus.

    Args:
        root: absolute folder of the corpus, or its URL on an object store, with one of `SCHEMES`.
    """

    root: str

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    def table(self, table: Table) -> str:
        """Folder of a Delta table."""
        return posixpath.join(self.root, table)

    def log(self, table: Table) -> str:
        """Folder of the commits of a Delta table."""
        return posixpath.join(self.table(table), LOG)

    @property
    def index(self) -> str:
        """Folder of the search index when it is kept beside the corpus."""
        return posixpath.join(self.root, INDEX)

    @property
    def answers(self) -> str:
        """Folder of language-model answers."""
        return posixpath.join(self.root, ANSWERS)

    @property
    def batches(self) -> str:
        """Folder with the record of batches at services."""
        return posixpath.join(self.root, BATCHES)

    @property
    def orders(self) -> str:
        """Folder of orders for workers of a work pool, and of marks of allowances."""
        return posixpath.join(self.root, ORDERS)

    def order(self, name: str) -> str:
        """Path of an order, of its answer, or of a mark of an allowance."""
        return posixpath.join(self.orders, f"{name}.json")

    @property
    def staging(self) -> str:
        """Folder in which commits to local tables are tested before they take effect."""
        return posixpath.join(self.root, STAGING)

    @property
    def probe(self) -> str:
        """Object that is written repeatedly on condition that it does not exist."""
        return posixpath.join(self.root, PROBE)

    def shard(self, table: Table, name: str) -> str:
        """Path of a Parquet file of a table."""
        return posixpath.join(self.root, table, name)


def layout_of(root: str) -> Layout:
    """Return the layout of the corpus at a folder or URL.

    Raises:
        SettingsError: a corpus cannot be kept at this kind of place.
    """
    scheme, mark, place = root.partition("://")
    if not mark:
        return Layout(str(expanded(root).resolve()))
    if scheme == "file":
        return Layout(unquote(urlsplit(root).path))
    if scheme not in SCHEMES:
        raise SettingsError(
            f"corpus root {root}: a corpus is kept in a local folder or on an object store (s3://, abfs://, gs://); "
            f"{scheme}:// is not supported"
        )
    names = [name for name in place.split("/") if name]
    if not names or _MISREAD.search(place) or {".", ".."} & set(names):
        raise SettingsError(
            f"corpus root {root}: write {scheme}://bucket/prefix, without spaces and none of ? # % * @ [ ] {{ }} \\ .."
        )
    return Layout(f"{SCHEMES[scheme]}://{'/'.join(names)}")


def file_name(file: str) -> str:
    """Return the name of a file, without its folder."""
    return file.rpartition("/")[2]


def shard_name(run_id: str, batch: int, worker: str = "") -> str:
    """Return the name of the shard that one batch of a run writes, unique to it.

    Args:
        run_id: id of the run.
        batch: number of the batch.
        worker: mark of the process that writes it; empty for the run's own. A batch whose worker seems lost is given
            to another, and the first may still write.
    """
    return f"{run_id}-{batch:05d}{worker and f'-{worker}'}.parquet"


def batch_shard_name(run_id: str, number: int, part: int) -> str:
    """Return the name of a shard with vectors of a batch at a service, from the run that sent it."""
    return f"{run_id}-batch{number:08d}-{part:05d}.parquet"


def entries_shard_name(run_id: str, number: int) -> str:
    """Return the name of a shard with texts or chunks of entries; a rewrite of the file keeps the mark in its name."""
    return f"{run_id}{_ENTRIES_MARK}{number:05d}.parquet"


def compacted_shard_name(run_id: str, number: int, *, entries: bool) -> str:
    """Return the name of a shard that a compaction writes in place of others."""
    return (entries_shard_name if entries else shard_name)(f"{run_id}{_COMPACTED_MARK}", number)


def is_compacted(file: str) -> bool:
    """True if the name of a shard says that a compaction wrote it in place of others."""
    return _COMPACTED_MARK in posixpath.basename(file)


def run_of(name: str) -> tuple[str, datetime] | None:
    """Return the id of the run that wrote a file, and when the run began; None if the name does not say.

    Args:
        name: name of a shard.
    """
    run = _RUN_ID.match(name)
    return None if run is None else (run[0], datetime.strptime(run[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC))


def holds_entries(file: str) -> bool:
    """True if the name of a shard of texts or chunks marks it as holding entries."""
    return _ENTRIES_MARK in posixpath.basename(file)
