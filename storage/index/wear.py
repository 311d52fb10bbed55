"""Wear of an index: signs that it is better built again, or its rows moved to segments, than updated."""

from __future__ import annotations

from parquetry.storage.database import Connection, tuples
from parquetry.storage.files.layout import file_name
from parquetry.storage.index.build import read_state
from parquetry.storage.index.segments import (
    Division,
    close_segment,
    next_chunk,
    own_chunks,
    renew_segments,
    segments_of,
)
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.lineage import all_replaced_by

WORN_SHARE = 0.3
"""share of dead or unsorted rows that requires a rebuild, or that a segment is written again"""
WORN_ROWS = 50_000
"""number of such rows below which nothing is written again for them"""
LAST_NUMBER = 2_000_000_000
"""number of a chunk from which an index is built again: numbers have 31 bits, and those of replaced chunks are not used
a second time"""


def needs_rebuild(connection: Connection, snapshot: Snapshot) -> bool:
    """True if an index needs a rebuild: too much is dead or unsorted, or rows have been erased since.

    Until then, it keeps the texts of dead documents. Files that were compacted are not erased.
    """
    files = snapshot.files["documents"]
    gone = set(read_state(connection).files.get("documents", ())) - {file_name(file) for file in files}
    if not gone <= all_replaced_by(files if gone else ()) or next_chunk(connection) > LAST_NUMBER:
        return True
    # What is worn in an index of several files is put in order file by file.
    return not segments_of(connection) and _is_worn(connection)


def divide(connection: Connection, division: Division) -> bool:
    """Move the rows of an index file to segments if they are enough or worn, and renew worn segments.

    Args:
        connection: connection with the index as current database, open for writing.
        division: size and place of segments.

    Returns:
        True if rows left the index file, which has their space now.
    """
    moves = own_chunks(connection) >= division.chunks or bool(segments_of(connection) and _is_worn(connection))
    if moves:
        close_segment(connection, division)
    renew_segments(connection, division, WORN_ROWS, WORN_SHARE)
    return moves


def _is_worn(connection: Connection) -> bool:
    """True if much of the index file itself is dead or unsorted, compared with what is in order."""
    segments = segments_of(connection)
    first = max((each.next_doc for each in segments), default=0)
    ((dead, sorted_rows, postings),) = tuples(
        connection,
        """SELECT (SELECT coalesce(sum(chunks), 0) FROM parts.dead WHERE doc >= $1),
            (SELECT coalesce(max(value::BIGINT), 0) FROM parts.meta WHERE key = 'sorted_postings'),
            (SELECT count(*) FROM segment.postings)""",
        [first],
    )
    unsorted = postings - sorted_rows
    in_order = sorted_rows + sum(each.postings for each in segments)
    return bool(
        dead > max(WORN_ROWS, WORN_SHARE * own_chunks(connection))
        or unsorted > max(20 * WORN_ROWS, WORN_SHARE * in_order)
    )
