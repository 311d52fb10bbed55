"""The sign-bit codes of the vectors of an index, and the rotation that they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection
from parquetry.storage.index.signatures import bit_place, rotation, signature_columns, signatures_of
from parquetry.storage.index.words import slices

if TYPE_CHECKING:
    import pyarrow as pa


def make_codes(connection: Connection, space: int, dimension: int) -> None:
    """Create the tables of the codes and of the rotation of a vector space."""
    import pyarrow as pa

    columns = ", ".join(f"{name} BIGINT" for name in signature_columns(dimension))
    connection.execute(f"CREATE TABLE segment.codes_{space} (chunk INTEGER, doc INTEGER, {columns})")
    rows = pa.FixedSizeListArray.from_arrays(pa.array(rotation(dimension).ravel()), dimension)
    words, masks = zip(*(bit_place(bit) for bit in range(dimension)), strict=True)
    table = {"word": pa.array(words, pa.int32()), "mask": pa.array(masks, pa.int64()), "axis": rows}
    connection.register("rows", pa.table(table))
    connection.execute(
        f"CREATE TABLE parts.rotation_{space} AS SELECT word, mask, axis::FLOAT[{dimension}] AS axis FROM rows"
    )
    connection.unregister("rows")


def add_codes(connection: Connection, space: int, first: int, end: int) -> None:
    """Add sign bits of new vectors, rotated by the rotation of their space; commits as `count_words` does.

    Args:
        connection: connection with the index as current database.
        space: number of the space.
        first: number of the first new chunk.
        end: one more than that of the last one.
    """
    import pyarrow as pa

    axes = _axes(connection, space)
    for low, high in slices(connection, first, end):
        rows: pa.Table = connection.sql(
            f"""SELECT chunk, doc, vector_{space} AS vector FROM segment.chunks
            WHERE chunk >= {low} AND chunk < {high} AND vector_{space} IS NOT NULL"""
        ).to_arrow_table()
        if not rows.num_rows:
            continue
        column = rows.column("vector").combine_chunks()
        vectors = np.asarray(column.values).reshape(rows.num_rows, -1)
        codes = signatures_of(vectors, axes)
        words = {name: pa.array(codes[:, i]) for i, name in enumerate(signature_columns(vectors.shape[1]))}
        # The transaction keeps what it reads until its end: copies, which do not refer to the vectors beside them.
        numbers = {name: pa.array(rows.column(name).to_numpy().copy()) for name in ("chunk", "doc")}
        batch = pa.table({**numbers, **words})
        connection.register("batch", batch)
        connection.execute(f"INSERT INTO segment.codes_{space} BY NAME FROM batch")
        connection.unregister("batch")


def _axes(connection: Connection, space: int) -> npt.NDArray[np.float32]:
    """Return the rotation of a space as the index holds it: computing it anew takes longer, and several threads."""
    rows = connection.sql(f"SELECT axis FROM parts.rotation_{space} ORDER BY word, mask < 0, mask").to_arrow_table()
    return np.asarray(rows.column("axis").combine_chunks().values).reshape(rows.num_rows, -1)
