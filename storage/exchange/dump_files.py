"""Rows of dumps in Parquet or JSON lines, a few in memory at a time, each line under a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pydantic_core

from parquetry.errors import SettingsError, first_line
from parquetry.importing.chunk import RejectedRow
from parquetry.importing.fields import rows_of
from parquetry.printing import visible

PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson", ".json")
_MOST_LINE = 64 << 20
"""bytes of a line"""
_ROWS = 256
"""rows of Parquet read at once"""
_MOST_BATCH = 512 << 20
"""bytes of those rows"""
_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class DumpRow:
    """A row of a dump as it stands there."""

    place: str
    """file and row: `dump.jsonl, row 17`"""
    values: Any
    """a mapping, or a `RejectedRow` for a row that cannot be read"""


def files_of(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files of a dump, those of a folder by name.

    Raises:
        SettingsError: there is no such file, none in a folder, or it is of another kind.
    """
    found: list[Path] = []
    for path in paths:
        try:
            inside = sorted(each for each in path.iterdir() if _is_dump(each)) if path.is_dir() else [path]
            kinds = [_is_dump(each) and each.is_file() for each in inside]
        except OSError as error:
            raise SettingsError(f"{visible(str(path))} cannot be read: {error.strerror or error}") from error
        if not inside or not all(kinds):
            raise SettingsError(
                f"{visible(str(path))} is no dump: a file that ends in {', '.join((*PARQUET, *JSON_LINES))}, or a "
                "folder of them"
            )
        found += inside
    return tuple(found)


def rows_in(files: Sequence[Path]) -> Iterator[DumpRow]:
    """Yield the rows of files, in order.

    Raises:
        SettingsError: a file cannot be read.
    """
    for file in files:
        name = visible(file.name)
        try:
            with file.open("rb") as stream:
                is_parquet = stream.read(len(_MAGIC)) == _MAGIC
            yield from _parquet_rows(file, name) if is_parquet else _json_rows(file, name)
        except (OSError, pa.ArrowException) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise SettingsError(f"{visible(str(file))} cannot be read: {reason or first_line(error)}") from error


def _is_dump(path: Path) -> bool:
    return path.suffix.lower() in (*PARQUET, *JSON_LINES) and not path.name.startswith(".")


def _json_rows(file: Path, name: str) -> Iterator[DumpRow]:
    number = 0
    with file.open("rb") as stream:
        while line := stream.readline(_MOST_LINE + 1):
            number += 1
            if len(line) > _MOST_LINE:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(_MOST_LINE)
                yield DumpRow(
                    f"{name}, row {number}", RejectedRow("too-large", f"its line has more than {_MOST_LINE >> 20} MiB")
                )
            elif line.strip():
                yield from _rows_of_line(line, f"{name}, row {number}")


def _rows_of_line(line: bytes, place: str) -> Iterator[DumpRow]:
    try:
        value = pydantic_core.from_json(line)
    except ValueError as error:
        yield DumpRow(place, RejectedRow("not-a-row", f"it is no JSON: {first_line(error)}"))
        return
    for item, row in enumerate(rows_of(value), start=1):
        where = place if row is value else f"{place}, item {item}"
        known = isinstance(row, dict | RejectedRow)
        yield DumpRow(where, row if known else RejectedRow("not-a-row", "it is JSON, but no object"))


def _parquet_rows(file: Path, name: str) -> Iterator[DumpRow]:
    import pyarrow.parquet as pq

    number = 0
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=_ROWS):
            if batch.nbytes > _MOST_BATCH:
                raise SettingsError(f"{name}: {_ROWS} rows from row {number + 1} on have more than 512 MiB")
            columns = {field: _values(column) for field, column in zip(batch.schema.names, batch.columns, strict=True)}
            for place in range(batch.num_rows):
                number += 1
                yield DumpRow(f"{name}, row {number}", {field: values[place] for field, values in columns.items()})


def _values(column: pa.Array) -> Sequence[Any]:
    """Return the values of a column; lists of numbers as arrays, which take a tenth of the time of Python's."""
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        found: list[Any] = column.to_pylist()
        return found
    if not pa.types.is_floating(kind.value_type):
        return column.to_pylist()  # type: ignore[no-any-return]
    lists = column.cast(pa.large_list(kind.value_type))
    offsets = lists.offsets.to_numpy()
    values = lists.values.to_numpy(zero_copy_only=False).astype(np.float64)
    return [
        values[offsets[place] : offsets[place + 1]] if valid else None
        for place, valid in enumerate(lists.is_valid().to_pylist())
    ]
