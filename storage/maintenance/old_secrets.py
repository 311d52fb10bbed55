"""Secrets in old, unmasked messages of a corpus: find them and remove them from every file.

The search covers the secrets known to this process. A key that has been changed since is found while the environment
still holds it, under any name of a secret. Content of documents is left alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from posixpath import basename, join

import pyarrow as pa
import pyarrow.parquet as pq

from parquetry.known_secrets import known_forms
from parquetry.masking import without_known
from parquetry.planning.rows import RunStamp
from parquetry.plural import counted
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import reading, sql_list, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout, Table, shard_name
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake import schema
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.replace_files import gave_way, replace_files
from parquetry.storage.lake.shards import write_shard
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.maintenance.repair_log import Step


@dataclass(frozen=True, slots=True)
class OldSecrets:
    """The locations of secrets in a corpus."""

    rows: Mapping[tuple[Table, str], int]
    """(table, column) -> number of rows in current files whose message holds a secret"""
    files: Mapping[Table, tuple[str, ...]]
    """table -> current files with secrets"""
    left: tuple[str, ...]
    """replaced files with secrets that still exist"""
    answers: tuple[str, ...]
    """cached answers of language models with secrets"""

    def __bool__(self) -> bool:
        return bool(self.rows or self.left or self.answers)

    def told(self) -> list[str]:
        """Describe locations and counts, never the secrets."""
        found = [f"{counted(count, 'row')} of {table}.{column}" for (table, column), count in sorted(self.rows.items())]
        found += [counted(len(self.left), "file that gave way", "files that gave way")] if self.left else []
        return found + ([f"{counted(len(self.answers), 'kept answer')} of a language model"] if self.answers else [])


def find_secrets(snapshot: Snapshot) -> OldSecrets:
    """Search the messages of all files, and the cached answers.

    Args:
        snapshot: the newest snapshot, without unreadable files.

    Raises:
        StorageError: a file cannot be read.
    """
    rows: Counter[tuple[Table, str]] = Counter()
    files: dict[Table, tuple[str, ...]] = {}
    left: list[str] = []
    if not known_forms():
        return OldSecrets(rows, files, (), ())
    for table, columns in schema.MESSAGES.items():
        present = snapshot.files[table]
        old = _left_behind(snapshot, table)
        for column in columns:
            for file, count in _held(snapshot, (*present, *old), column).items():
                if file in old:
                    left.append(file)
                else:
                    rows[table, column] += count
                    files[table] = (*files.get(table, ()), file)
    unique = {table: tuple(dict.fromkeys(held)) for table, held in files.items()}
    return OldSecrets(rows, unique, tuple(dict.fromkeys(left)), tuple(_answers(snapshot.layout)))


def secret_steps(lake: Lake, search: SearchSettings, stamp: RunStamp) -> Iterator[Step]:
    """Yield the steps that remove the secrets from a corpus; carry out each before requesting the next.

    Files are rewritten and replaced in one commit for each table; then the old ones are deleted. The search index,
    which repeats the tables, is rebuilt. After an interruption, running it again finds and finishes the rest.

    Args:
        lake: the corpus, which must be undamaged.
        search: gives the location of the search index.
        stamp: stamp of this run.

    Raises:
        PublishConflict: another run changed a table meanwhile; run it again.
        DamagedCorpus: a file that would be rewritten does not hold what was written.
        StorageError: a file could not be written or deleted.
    """
    held = find_secrets(lake.snapshot())
    for table in held.files:
        count = sum(rows for (of, _), rows in held.rows.items() if of == table)
        what = f"mask the secrets in {counted(count, 'message')} of {table}"
        yield Step(what, partial(_mask, lake, table, held.files[table], stamp))
    if held.left or held.answers:
        count = len(held.left) + len(held.answers)
        what = (
            f"delete {counted(count, 'file that holds', 'files that hold')} secrets and nothing that is not elsewhere"
        )
        yield Step(what, partial(_delete, lake.layout, (*held.left, *held.answers)))
    if held.rows or held.left:

        def build() -> None:
            folder = IndexFolder(lake.layout, search)
            folder.clear()
            folder.refresh(lake.snapshot())

        yield Step("build the search index again, without the secrets", build)


def _held(snapshot: Snapshot, files: Sequence[str], column: str) -> Counter[str]:
    """Return file -> number of rows whose message holds a secret."""
    held: Counter[str] = Counter()
    if not files:
        return held
    with connect_snapshot(snapshot) as connection, reading():
        found = tuples(
            connection,
            f"""SELECT file_of_row, {column}, count(*)
            FROM read_parquet({sql_list(files)}, filename = 'file_of_row') WHERE {column} <> '' GROUP BY ALL""",
        )
    for file, message, count in found:
        if without_known(message) != message:
            held[file] += count
    return held


def _left_behind(snapshot: Snapshot, table: Table) -> tuple[str, ...]:
    """Return the existing files of a table that only earlier versions name."""
    names = gave_way(snapshot.layout, table) - {basename(file) for file in snapshot.files[table]}
    entries = filesystem_at(snapshot.layout.root).entries(snapshot.layout.table(table))
    return tuple(snapshot.layout.shard(table, entry.name) for entry in entries if entry.name in names)


def _answers(layout: Layout) -> Iterator[str]:
    files = filesystem_at(layout.root)
    for owner in files.entries(layout.answers):
        folder = join(layout.answers, owner.name)
        names = [entry.name for entry in files.entries(folder)] if owner.is_folder else []
        for path in (join(folder, name) for name in names if name.endswith(".json")):
            try:
                with files.open(path) as stream:
                    text = stream.read().decode("utf-8", "replace")
            except FileNotFoundError:
                # Erased meanwhile.
                continue
            if without_known(text) != text:
                yield path


def _mask(lake: Lake, table: Table, files: Sequence[str], stamp: RunStamp) -> None:
    # Damaged rows would get a valid checksum of their own, and the damage could no longer be recognised.
    check_written(lake.snapshot(), table, files)
    shards = []
    for file in files:
        with filesystem_at(file).open(file) as stream:
            rows = pq.read_table(stream)
        columns = [
            rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
            for field in schema.SCHEMAS[table]
        ]
        again = pa.table(columns, schema=schema.SCHEMAS[table])
        shards.append(write_shard(lake.layout, table, shard_name(stamp.run_id, time.time_ns()), again))
    replace_files(lake.layout, table, [basename(file) for file in files], shards, stamp.run_id)
    _delete(lake.layout, files)


def _delete(layout: Layout, files: Sequence[str]) -> None:
    for file in files:
        filesystem_at(layout.root).delete(file)
