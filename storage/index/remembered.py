"""Notes of an index on the tables, beside what searches need, so that a refresh reads no old shard again.

The state of each shard of `documents` when it was compared with its checksum, and which shards of `chunks` hold a text.
Both only save reading: shards that an index does not remember are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from parquetry.storage.database import Connection, sql_list, tuples
from parquetry.storage.files.layout import Layout, file_name
from parquetry.storage.lake.damage import faults_in
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.text_shards import KEY_DIGITS, ShardsOfTexts, text_key

Mark = tuple[int, int, int]
"""size in bytes, time of the last change in nanoseconds, inode: a file with the same mark is as it was"""
_CHECKED = "checked"
"""key of the marks in `parts.meta`"""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS parts.text_shards (shard INTEGER, name VARCHAR)",
    "CREATE TABLE IF NOT EXISTS parts.text_keys (key BIGINT, shard INTEGER)",
)


_KEY_SQL = f"('0x' || left(text_hash, {KEY_DIGITS}))::BIGINT"


# --- shards of documents that were compared with their checksums


def marks_of(layout: Layout) -> dict[str, Mark]:
    """Return the marks of the files of `documents` by name; none on an object store, which checks files by itself."""
    if not layout.is_local:
        return {}
    with os.scandir(layout.table("documents")) as entries:
        found = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".parquet")]
    return {name: (stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found}


def unchecked(connection: Connection, layout: Layout, files: Iterable[str]) -> list[str]:
    """Return the shards of `documents` that are not as they were when the index compared them.

    Args:
        connection: connection with the index as current database.
        layout: layout of the corpus.
        files: shards of a local corpus.
    """
    known, now = _checked(connection), marks_of(layout)
    return [file for file in files if (name := file_name(file)) not in now or known.get(name) != now[name]]


def note_checked(
    connection: Connection, snapshot: Snapshot, fresh: Collection[str], before: Mapping[str, Mark]
) -> None:
    """Remember the marks of the shards of `documents` that hold what was written.

    Args:
        connection: connection with the index as current database, open for writing.
        snapshot: snapshot that the index is brought to.
        fresh: shards that were compared with their checksums for it.
        before: marks of all shards before that.
    """
    if not before:
        return
    known = _checked(connection) | {name: before.get(name) for name in map(file_name, fresh)}
    files = {file_name(file): file for file in snapshot.files["documents"]}
    changed = [file for name, file in files.items() if known.get(name) != before.get(name)]
    faulty = {file_name(file) for file, _ in faults_in(snapshot.layout, "documents", changed)}
    told = {name: mark for name, mark in before.items() if name in files and name not in faulty}
    connection.execute("DELETE FROM parts.meta WHERE key = $1", [_CHECKED])
    connection.execute("INSERT INTO parts.meta VALUES ($1, $2)", [_CHECKED, json.dumps(told)])


def _checked(connection: Connection) -> dict[str, Mark]:
    found = tuples(connection, "SELECT value FROM parts.meta WHERE key = $1", [_CHECKED])
    return {name: tuple(mark) for value in found for name, mark in json.loads(value[0]).items()}


# --- shards of chunks by the texts that they hold


def note_texts(connection: Connection, snapshot: Snapshot) -> None:
    """Remember which texts new shards of `chunks` hold, and forget shards that gave way.

    Args:
        connection: connection with the index as current database, open for writing.
        snapshot: snapshot that the index is brought to.

    Raises:
        duckdb.Error: a shard cannot be read.
    """
    for statement in _TABLES:
        connection.execute(statement)
    present = {file_name(file): file for file in snapshot.files["chunks"]}
    held = {name for (name,) in tuples(connection, "SELECT name FROM parts.text_shards")}
    if gone := sorted(held - present.keys()):
        named = "name IN (SELECT unnest($1::VARCHAR[]))"
        connection.execute(
            f"DELETE FROM parts.text_keys WHERE shard IN (SELECT shard FROM parts.text_shards WHERE {named})", [gone]
        )
        connection.execute(f"DELETE FROM parts.text_shards WHERE {named}", [gone])
    new = sorted(present.keys() - held)
    if not new:
        return
    connection.execute(
        """INSERT INTO parts.text_shards
        SELECT row_number() OVER (ORDER BY name) + (SELECT coalesce(max(shard), 0) FROM parts.text_shards), name
        FROM (SELECT unnest($1::VARCHAR[]) AS name)""",
        [new],
    )
    connection.execute(
        f"""INSERT INTO parts.text_keys SELECT {_KEY_SQL}, shard
        FROM read_parquet({sql_list(present[name] for name in new)}, filename = 'file')
        JOIN parts.text_shards ON name = parse_filename(file)"""
    )


def shards_of_texts(connection: Connection, text_hashes: Sequence[str]) -> ShardsOfTexts:
    """Return the shards in which some texts may be.

    Args:
        connection: connection with the index as current database.
        text_hashes: hashes of the texts.
    """
    known = frozenset(name for (name,) in tuples(connection, "SELECT name FROM parts.text_shards"))
    found = tuples(
        connection,
        """SELECT text_hash, list(name ORDER BY name DESC)
        FROM (SELECT unnest($1::VARCHAR[]) AS text_hash, unnest($2::BIGINT[]) AS key)
        JOIN parts.text_keys USING (key) JOIN parts.text_shards USING (shard) GROUP BY text_hash""",
        [list(text_hashes), [text_key(each) for each in text_hashes]],
    )
    return ShardsOfTexts(known, dict(found))
