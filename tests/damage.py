"""Effects of a bad disk on files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def flip_vector(shard: Path) -> None:
    """Flip the highest bit of the exponent of the last value of the vectors in a shard."""
    group = pq.read_metadata(shard).row_group(0)
    columns = (group.column(at) for at in range(group.num_columns))
    (vectors,) = [column for column in columns if column.path_in_schema.startswith("vector")]
    end = vectors.data_page_offset + vectors.total_compressed_size
    content = bytearray(shard.read_bytes())
    content[end - 1] ^= 1 << 6
    shard.write_bytes(content)


def replace_in_column(shard: Path, column: str, old: str, new: str) -> None:
    """Rewrite a shard with other text in a column: readable, but not what was written."""
    table = pq.read_table(shard)
    found: pa.ChunkedArray = pc.replace_substring(table[column], old, new)
    assert found != table[column]
    pq.write_table(table.set_column(table.schema.get_field_index(column), table.schema.field(column), found), shard)
