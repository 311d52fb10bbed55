"""Find the Parquet files of a corpus that do not hold what was written.

Files are checked before an index is built from them, and after a failed read, so that the caller learns which file to
restore. Nothing is checked while reads succeed and nothing new is indexed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from posixpath import basename, dirname

import duckdb

from parquetry.errors import DamagedCorpus, FilesGaveWay
from parquetry.storage.database import FAILURES, QueryError
from parquetry.storage.files.filesystem import filesystem_at, sha256_of
from parquetry.storage.files.layout import TABLES, Layout, Table
from parquetry.storage.lake.checksums import recorded_hashes
from parquetry.storage.lake.damaged_shards import faulty_columns, is_whole
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.staging import COMMIT, commit_name, number_of
from parquetry.storage.replaced_files import missing_file_error

_NAMED = 3
"""files named in a message"""
_OF_A_STATEMENT = (
    *(duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException),
    *(duckdb.InterruptException, duckdb.PermissionException, duckdb.NotImplementedException),
)
"""errors that the statement itself may have caused; no file is suspected, and none is read to find out"""


def check_written(snapshot: Snapshot, table: Table, files: Sequence[str]) -> None:
    """Check that files of a local corpus hold what was written; an object store checks its content by itself.

    Args:
        snapshot: snapshot with the files.
        table: table of the files.
        files: files that are about to be read.

    Raises:
        DamagedCorpus: a file is damaged; the message names it.
    """
    for file, wrong in faults_in(snapshot.layout, table, files) if snapshot.layout.is_local else ():
        _raise_if_it_gave_way(file)
        raise DamagedCorpus(f"the corpus is damaged: {file} {wrong}")


def damage_in(snapshot: Snapshot, tables: Sequence[Table] = TABLES) -> list[str]:
    """Return the damaged files of the given tables, each with the damage; reads every byte of them.

    Raises:
        FilesGaveWay: another run has replaced a file since it was listed.
        StorageError: the object store could not be reached.
    """
    looked_at = [table for table in tables if table not in snapshot.damaged]
    found = []
    for table in looked_at:
        for file, wrong in faults_in(snapshot.layout, table, snapshot.files[table]):
            _raise_if_it_gave_way(file)
            found.append(f"{file} {wrong}")
    return found


def _raise_if_it_gave_way(file: str) -> None:
    """Raise if a file is missing because the newest version no longer names it; that is not damage."""
    missing = basename(file) not in {entry.name for entry in filesystem_at(file).entries(dirname(file))}
    if missing and isinstance(error := missing_file_error(file), FilesGaveWay):
        raise error


@contextmanager
def naming_damage(snapshot: Snapshot) -> Iterator[None]:
    """Name the damaged files if the block fails because of them.

    Args:
        snapshot: the snapshot that the block reads.

    Raises:
        DamagedCorpus: a file could not be read; the message names it. Any other error passes unchanged.
        FilesGaveWay: another run has replaced a file since it was listed.
    """
    try:
        yield
    except FAILURES as error:
        if not may_be_damage(error):
            raise
        found = damage_in(snapshot)
        mentioned = [line for line in found if basename(line.split(" ", 1)[0]) in str(error)]
        if not found:
            raise
        raise DamagedCorpus(f"the corpus is damaged: {'; '.join((mentioned or found)[:_NAMED])}") from error


def next_commit(layout: Layout, table: Table) -> str:
    """Return the path of the commit that would follow the newest one of a table; its folder on an object store."""
    log = layout.log(table)
    if not layout.is_local:
        return log
    numbers = [number_of(entry.name) for entry in Path(log).iterdir() if COMMIT.fullmatch(entry.name)]
    return f"{log}/{commit_name(max(numbers, default=-1) + 1)}"


def may_be_damage(error: Exception) -> bool:
    """True if an error may come from a damaged file that has not been named yet."""
    if isinstance(error, DamagedCorpus | FilesGaveWay):
        return False
    cause = error if isinstance(error, duckdb.Error) else error.__cause__
    own_fault = isinstance(error, QueryError) and isinstance(cause, _OF_A_STATEMENT)
    return isinstance(cause, duckdb.Error) and not own_fault


def faults_in(layout: Layout, table: Table, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the damaged ones among files, each with the damage.

    Args:
        layout: layout of the corpus.
        table: table of the files.
        files: files to check, one after the other.

    Raises:
        StorageError: the object store could not be reached.
    """
    wanted = recorded_hashes(layout, table, {basename(file) for file in files}) if layout.is_local else {}
    for file in files:
        wrong = _fault(layout, file, wanted.get(basename(file)))
        if wrong is not None:
            yield file, wrong


def _fault(layout: Layout, file: str, wanted: str | None) -> str | None:
    if layout.is_local and not Path(file).exists():
        return "is missing"
    if not wanted:
        # The file is of an earlier program, of a crashed run, or on an object store.
        whole = is_whole(file) and not (layout.is_local and faulty_columns(file))
        return None if whole else "is missing, cut short or damaged"
    if not layout.is_local or sha256_of(file) == wanted:
        return None
    return "is not what was written: its checksum differs" if is_whole(file) else "is cut short or damaged"
