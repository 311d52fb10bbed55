"""Segments: the rows of a large index in several files, searched together.

Chunks, postings and codes grow with the corpus. Every file has some of their rows, in the schema `segment`; views in
`parts` put those of all files together. New rows are written to the index file. When it has as many chunks as the
settings allow, its rows move to segment files, which are never written again, and which later versions share. See
docs/decisions/0109-an-index-in-segments.md.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb

from parquetry.storage.database import Connection, sql_string, transaction, tuples
from parquetry.storage.files.durable import replace

STORAGE = "STORAGE_VERSION 'v1.5.0'"
"""format of all files: the DuckDB command lines of the 1.x series can open them, too"""
_MEMORY = "1GB"
"""memory that DuckDB uses to write a segment before it spills to disk: its postings are sorted at once"""
_PREFIX = "segment_"
"""prefix of the name of a segment, which is the name of its file and of the database when it is attached"""
_NAME = re.compile(r"segment_[0-9a-f]{16}")
_OWN = "segment"
"""schema with the rows of one file"""
TABLES = (
    f"CREATE SCHEMA {_OWN}",
    f"""CREATE TABLE {_OWN}.chunks (chunk INTEGER, doc INTEGER, revision BIGINT, chunk_index INTEGER, start BIGINT,
    "end" BIGINT, kind VARCHAR, page INTEGER, headings VARCHAR[], text VARCHAR, tokens INTEGER, text_hash VARCHAR,
    embedder VARCHAR)""",
    f"CREATE TABLE {_OWN}.postings (term INTEGER, chunk INTEGER, doc INTEGER, tf INTEGER, length INTEGER)",
    # Each holds the revisions from `first_doc` to before `next_doc`, and those alone.
    """CREATE TABLE parts.segments (name VARCHAR, first_doc INTEGER, next_doc INTEGER, next_chunk INTEGER,
    chunks BIGINT, postings BIGINT)""",
)


@dataclass(frozen=True, slots=True)
class Division:
    """Place and size of segments."""

    folder: Path
    """folder of the index"""
    chunks: int
    """chunks of the index file from which they move to segments, and of each segment, roughly"""


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """A segment file as an index records it."""

    name: str
    first_doc: int
    next_doc: int
    next_chunk: int
    """one more than the largest number of a chunk"""
    chunks: int
    postings: int


# --- files


def segment_file(folder: Path, name: str) -> Path:
    """Return the path of a segment."""
    return folder / f"{name}.duckdb"


def is_name(name: str) -> bool:
    """True if a text is the name of a segment."""
    return _NAME.fullmatch(name) is not None


def segment_files(folder: Path) -> list[Path]:
    """Return all segment files of a folder, of whichever versions."""
    return sorted(folder.glob(f"{_PREFIX}*.duckdb"))


# --- connections


def segments_of(connection: Connection) -> list[IndexSegment]:
    """Return the segments of the index in the current database; none of an empty database or of an older format.

    Raises:
        duckdb.InvalidInputException: a name is none that `close_segment` gives: it would be a part of SQL and of paths.
    """
    try:
        found = connection.execute(
            "SELECT name, first_doc, next_doc, next_chunk, chunks, postings FROM parts.segments ORDER BY first_doc"
        ).fetchall()
    except duckdb.CatalogException:
        return []
    segments = [IndexSegment(*row) for row in found]
    if not all(is_name(each.name) for each in segments):
        raise duckdb.InvalidInputException("a segment of the index has a name that is none")
    return segments


def attach_segments(connection: Connection, folder: Path) -> None:
    """Attach the segments of the index in the current database.

    Raises:
        duckdb.Error: one cannot be opened.
    """
    for each in segments_of(connection):
        connection.execute(f"ATTACH {sql_string(str(segment_file(folder, each.name)))} AS {each.name} (READ_ONLY)")


def join_segments(connection: Connection) -> None:
    """Create the views of `parts` over the rows of all files of the index in the current database."""
    holders = defaultdict[str, list[str]](list)
    for place in [*(f"{each.name}." for each in segments_of(connection)), ""]:
        for table in _tables(connection, place):
            holders[table].append(f"SELECT * FROM {place}{_OWN}.{table}")
    for table, held in holders.items():
        connection.execute(f"CREATE OR REPLACE VIEW parts.{table} AS {' UNION ALL BY NAME '.join(held)}")


def _tables(connection: Connection, place: str) -> list[str]:
    """Return the names of the divided tables that a file has.

    Args:
        connection: connection with the index as current database.
        place: qualifier of a segment, with a full stop; empty for the index file.
    """
    return [
        name
        for (name,) in tuples(
            connection,
            "SELECT table_name FROM duckdb_tables() WHERE database_name = $1 AND schema_name = $2 ORDER BY ALL",
            [place.rstrip(".") or "ix", _OWN],
        )
    ]


def next_chunk(connection: Connection) -> int:
    """Return the number of the next chunk to be added."""
    ((own,),) = tuples(connection, f"SELECT coalesce(max(chunk) + 1, 0) FROM {_OWN}.chunks")
    return max([int(own), *(each.next_chunk for each in segments_of(connection))])


# --- moving rows


def own_chunks(connection: Connection) -> int:
    """Return the number of chunks in the index file itself."""
    ((count,),) = tuples(connection, f"SELECT count(*) FROM {_OWN}.chunks")
    return int(count)


def close_segment(connection: Connection, division: Division) -> None:
    """Move the rows of the index file to new segments; those of replaced revisions go.

    Args:
        connection: connection with the index as current database, open for writing.
        division: place and size of the segments.
    """
    earlier = segments_of(connection)
    first = max((each.next_doc for each in earlier), default=0)
    made = [
        _written(connection, division.folder, "", low, high)
        for low, high in _ranges(connection, first, _next_doc(connection), division.chunks)
    ]
    with transaction(connection):
        for each in made:
            _record(connection, each)
        for table in _tables(connection, ""):
            connection.execute(f"CREATE OR REPLACE TABLE {_OWN}.{table} AS FROM {_OWN}.{table} LIMIT 0")
        connection.execute(f"UPDATE parts.dead SET chunks = 0 WHERE doc >= {first}")
        connection.execute("DELETE FROM parts.meta WHERE key = 'sorted_postings'")
        join_segments(connection)


def renew_segments(connection: Connection, division: Division, least: int, share: float) -> None:
    """Write segments again of which many chunks are of replaced revisions, without these.

    Args:
        connection: connection with the index as current database, open for writing.
        division: place of the segments.
        least: replaced chunks for which no segment is written again.
        share: share of replaced chunks above which a segment is written again.
    """
    dead = dict(
        tuples(
            connection,
            """SELECT name, sum(d.chunks)::BIGINT FROM parts.segments AS s
            JOIN parts.dead AS d ON d.doc >= s.first_doc AND d.doc < s.next_doc GROUP BY name""",
        )
    )
    for each in segments_of(connection):
        if dead.get(each.name, 0) <= max(least, share * each.chunks):
            continue
        anew = _written(connection, division.folder, f"{each.name}.", each.first_doc, each.next_doc)
        with transaction(connection):
            connection.execute("DELETE FROM parts.segments WHERE name = $1", [each.name])
            _record(connection, anew)
            connection.execute(
                f"UPDATE parts.dead SET chunks = 0 WHERE doc >= {each.first_doc} AND doc < {each.next_doc}"
            )
            join_segments(connection)
        connection.execute(f"DETACH {each.name}")


def _next_doc(connection: Connection) -> int:
    ((count,),) = tuples(
        connection, "SELECT (SELECT count(*) FROM parts.revisions) + (SELECT count(*) FROM parts.dead)"
    )
    return int(count)


def _ranges(connection: Connection, first: int, end: int, most: int) -> list[tuple[int, int]]:
    """Return ranges of revisions with about `most` chunks each."""
    pieces = max(1, own_chunks(connection) // most)
    starts = [
        doc
        for (doc,) in tuples(
            connection,
            f"""SELECT min(doc) FROM (
                SELECT doc, ((sum(chunks) OVER (ORDER BY doc) - chunks) * {pieces}
                    // greatest(1, sum(chunks) OVER ()))::INTEGER AS piece
                FROM parts.revisions WHERE doc >= {first}
            ) GROUP BY piece ORDER BY 1""",
        )
    ]
    bounds = [first, *starts[1:], end]
    return list(pairwise(bounds))


def _written(connection: Connection, folder: Path, source: str, first: int, end: int) -> IndexSegment:
    """Write the rows of some revisions to a new segment, attach it, and return it.

    Args:
        connection: connection with the index as current database, open for writing.
        folder: folder of the index.
        source: qualifier of the database to take them from, with a full stop; empty for the index file.
        first: number of the first revision.
        end: one more than that of the last one.
    """
    connection.execute(f"SET memory_limit = '{_MEMORY}'")
    name = f"{_PREFIX}{uuid.uuid4().hex[:16]}"
    building = folder / f"building-{name}.duckdb"
    kept = f"WHERE doc >= {first} AND doc < {end} AND doc NOT IN (SELECT doc FROM parts.dead)"
    tables = _tables(connection, source)
    connection.execute(f"ATTACH {sql_string(str(building))} AS {name} ({STORAGE})")
    with _detached(connection, name):
        connection.execute(f"CREATE SCHEMA {name}.{_OWN}")
        for table in tables:
            order = " ORDER BY term, chunk" if table == "postings" else ""
            connection.execute(
                f"CREATE TABLE {name}.{_OWN}.{table} AS SELECT * FROM {source}{_OWN}.{table} {kept}{order}"
            )
        ((chunks, last),) = tuples(connection, f"SELECT count(*), coalesce(max(chunk), -1) FROM {name}.{_OWN}.chunks")
        ((postings,),) = tuples(connection, f"SELECT count(*) FROM {name}.{_OWN}.postings")
        connection.execute(f"CHECKPOINT {name}")
    final = segment_file(folder, name)
    # It is on disk before the rows are gone from where they were.
    replace(building, final)
    connection.execute(f"ATTACH {sql_string(str(final))} AS {name} (READ_ONLY)")
    return IndexSegment(name, first, end, last + 1, chunks, postings)


def _record(connection: Connection, segment: IndexSegment) -> None:
    connection.execute(
        "INSERT INTO parts.segments VALUES ($1, $2, $3, $4, $5, $6)",
        [
            segment.name,
            segment.first_doc,
            segment.next_doc,
            segment.next_chunk,
            segment.chunks,
            segment.postings,
        ],
    )


@contextmanager
def _detached(connection: Connection, name: str) -> Iterator[None]:
    """Detach a database at the end of the block."""
    try:
        yield
    finally:
        connection.execute(f"DETACH {name}")
