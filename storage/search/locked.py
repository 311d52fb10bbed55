"""Limits for SQL of an untrusted caller: read-only access to the corpus and nothing else, in bounded time.

One lock for two uses: `parquetry.storage.search.export.scoped`, which holds the visible part of a corpus in memory and
reads no file at all, and the connection to a whole corpus, which reads the files of one version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from parquetry.errors import StorageError, first_line
from parquetry.storage.database import Connection, QueryError, sql_list
from parquetry.storage.files.filesystem import LocalFilesystem, filesystem_at
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.table_files import TableFiles

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

SECONDS = 120
"""seconds that a statement may take"""
WORKING_MEMORY = 2 << 30
"""bytes that DuckDB may use for a statement, beyond the memory of the connection when it is locked"""
MEMORY = 4 << 30
"""bytes that the process may use for a statement: DuckDB does not count intermediate values and the result"""
_SCHEME = "corpus"
"""URL scheme under which the files of a local corpus are attached"""


def lent(connection: Connection, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose files the connection reads through a read-only filesystem.

    DuckDB lets a statement write to every file that it may read: `WITH a AS (COPY ... TO ...) SELECT 1` is a query.

    Args:
        connection: receives the filesystem.
        snapshot: snapshot of the corpus.
    """
    if not snapshot.layout.is_local:
        filesystem_at(snapshot.layout.root).attach(connection)
        return snapshot
    connection.register_filesystem(_local())
    damaged = snapshot.damaged
    files = {
        table: tuple(f"{_SCHEME}://{file}" for file in snapshot.files[table])
        for table in TABLES
        if table not in damaged
    }
    return replace(snapshot, files=TableFiles(files).without(damaged))


def files_of(snapshot: Snapshot) -> list[str]:
    """Return paths or URLs of all files of a snapshot."""
    return [file for table in TABLES if table not in snapshot.damaged for file in snapshot.files[table]]


def _local() -> AbstractFileSystem:
    def read(address: str, start: int, end: int) -> bytes:
        with Path(_path(address)).open("rb") as stream:
            stream.seek(start)
            return stream.read(end - start)

    def listed(folder: str) -> list[tuple[str, int]]:
        return [(each.name, each.size) for each in LocalFilesystem().entries(_path(folder)) if not each.is_folder]

    from parquetry.storage.files.duckdb_filesystem import DuckdbFilesystem, Sizes

    return DuckdbFilesystem(_SCHEME, read, Sizes(listed))


def _path(address: str) -> str:
    return address.removeprefix(f"{_SCHEME}://")


def lock(connection: Connection, files: Sequence[str] = ()) -> None:
    """Lock a connection for SQL of an untrusted caller; no statement can unlock it.

    No file but those named, no network, no extension, no secret, no variable of this program, no setting that would
    change that, and a limit on time and memory.

    Args:
        connection: connection with everything that it needs attached and created.
        files: files that it may still read, through a read-only filesystem.

    Raises:
        StorageError: filling it has spilled to disk, to which it can no longer be denied access.
    """
    ((held,),) = connection.execute("SELECT coalesce(sum(memory_usage_bytes), 0) FROM duckdb_memory()").fetchall()
    for statement in (
        # Statements may read and write in the folder of spilled data.
        "SET temp_directory = ''",
        "SET allow_persistent_secrets = false",
        # The setting would expose the proxy of the environment, including its password.
        "SET http_proxy = ''",
        f"SET max_execution_time = {SECONDS * 1000}",
        f"SET memory_limit = '{(int(held) + WORKING_MEMORY) >> 20}MiB'",
        f"SET allowed_paths = {sql_list(files)}",
        # This blocks files, network, extensions and Python variables; the last setting makes that permanent.
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        try:
            connection.execute(statement)
        except duckdb.Error as error:
            raise StorageError(f"the connection cannot be closed to files: {first_line(error)}") from error


@contextmanager
def bounded() -> Iterator[None]:
    """Run a statement of a locked connection and fetch its result within the memory limit of a statement.

    Raises:
        QueryError: the statement takes more time or memory.
    """
    with _memory_limited(MEMORY):
        try:
            yield
        except MemoryError as error:
            raise QueryError(f"the answer takes more than {MEMORY >> 30} GiB of memory; ask for less of it") from error
        except QueryError as error:
            if isinstance(error.__cause__, duckdb.InterruptException):
                raise QueryError(f"it took longer than {SECONDS} s and was stopped; ask for less") from error
            raise


@contextmanager
def _memory_limited(more: int) -> Iterator[None]:
    """Let the process use at most this many bytes more than now."""
    if sys.platform == "win32":
        yield
        return
    import resource

    import psutil

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + more
    known = [each for each in (soft, hard, limit) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
