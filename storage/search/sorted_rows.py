"""Rows of visible documents written in order, a part of them in memory at a time.

DuckDB's ORDER BY spills too few of such wide rows: within a memory limit it fails, and without one it holds all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquetry.storage.database import Connection, tuples
from parquetry.storage.files.layout import Table

PART_CHUNKS = 10_000
"""chunks whose rows are in memory at once; more in an export of more than `PART_CHUNKS * MOST_PARTS` chunks"""
MOST_PARTS = 200
"""files that are open at once while rows are divided"""
_ROWS = 2048
"""rows read at a time"""


def bounds_of_parts(connection: Connection) -> npt.NDArray[np.int64]:
    """Divide the revisions of the table `visible` by order into parts of about as many chunks.

    Returns:
        int64[parts - 1]: the last revision of each part but the last.
    """
    found = tuples(
        connection,
        f"""WITH sized AS (SELECT revision, max(chunks) AS chunks FROM visible WHERE revision <> 0 GROUP BY 1)
        SELECT max(revision) FROM (
            SELECT revision, (sum(chunks) OVER (ORDER BY revision) - 1)
                // greatest({PART_CHUNKS}, (SELECT sum(chunks) FROM sized) // {MOST_PARTS} + 1) AS part FROM sized
        ) GROUP BY part ORDER BY 1""",
    )
    return np.array([revision for (revision,) in found[:-1]], np.int64)


def write_sorted(
    connection: Connection, table: Table, keys: Sequence[str], bounds: npt.NDArray[np.int64], folder: Path
) -> tuple[str, ...]:
    """Write the rows of a table that are of visible documents, a Parquet file for each part; return their paths.

    Args:
        connection: connection with the views of the corpus and the table `visible`.
        table: table whose rows have a revision.
        keys: columns that give the order, the first of them `revision`.
        bounds: as `bounds_of_parts` returns them.
        folder: folder for the files.
    """
    import pyarrow.parquet as pq

    rows = connection.sql(f"FROM all_{table} SEMI JOIN visible USING (revision)").to_arrow_reader(_ROWS)
    files = []
    for number, part in enumerate(_parts(rows, bounds, folder)):
        file = str(folder / f"{table}-{number:05d}.parquet")
        pq.write_table(
            part.sort_by([(key, "ascending") for key in keys]), file, compression="lz4", use_dictionary=False
        )
        files.append(file)
    return tuple(files)


def _parts(rows: pa.RecordBatchReader, bounds: npt.NDArray[np.int64], folder: Path) -> Iterator[pa.Table]:
    """Yield rows by part, in the order of the parts."""
    if not len(bounds):
        yield rows.read_all()
        return
    paths = [folder / f"{number}.arrow" for number in range(len(bounds) + 1)]
    with ExitStack() as opened:
        writers = [opened.enter_context(pa.ipc.new_file(str(path), rows.schema)) for path in paths]
        for batch in rows:
            places = np.searchsorted(bounds, batch.column("revision").to_numpy())
            for place in np.unique(places):
                writers[place].write_batch(batch.filter(pa.array(places == place)))
    for path in paths:
        with pa.OSFile(str(path)) as stream:
            yield pa.ipc.open_file(stream).read_all()
        path.unlink()
