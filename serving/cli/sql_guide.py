"""The guide that `parquetry sql` prints without a statement: views, macros and connection commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from parquetry.printing import tell, tell_wrapped
from parquetry.serving.cli.output import print_json, terminal_width
from parquetry.serving.search.service import Reader
from parquetry.storage.database import Connection, tuples
from parquetry.storage.files.layout import TABLES
from parquetry.storage.index.segments import segment_file, segments_of
from parquetry.storage.lake.raw_tables import QUERIES

_EXAMPLE = '"SELECT status, count(*) FROM documents GROUP BY ALL"'


def print_guide(reader: Reader, *, as_json: bool) -> None:
    """Print the views and macros, and the ways to query them; as JSON, tables, files and queries."""
    # Opening may find a later version than the one the reader was created for.
    connection = reader.connection
    root, index = reader.snapshot.layout.root, _index_file(connection)
    if as_json:
        files = {table: list(paths) for table, paths in reader.snapshot.files.items()}
        tables = {table: reader.snapshot.layout.table(table) for table in TABLES}
        told = {
            "version": reader.snapshot.version,
            "tables": tables,
            "files": files,
            "queries": QUERIES,
            "index": index,
            "segments": _segment_files(connection, index),
        }
        print_json(told)
        return
    tell(f"Version {reader.snapshot.version} of {root}. Views:")
    for name, columns in _views(connection):
        _print_wrapped(f"{name}: {', '.join(columns)}")
    tell()
    tell("Searching:")
    _print_wrapped(", ".join(_macros(connection)))
    tell()
    tell("Here:")
    tell(f"  parquetry sql {_EXAMPLE}")
    tell("  parquetry sql \"FROM search_text('what you look for', 5)\"")
    tell()
    tell("In the DuckDB CLI (pip install duckdb-cli; no extension is needed):")
    if index is not None:
        attached = [f"-cmd \"ATTACH '{file}' (READ_ONLY)\"" for file in _segment_files(connection, index)]
        tell(" ".join(["  duckdb -readonly", *attached, shlex.quote(index), _EXAMPLE]))
        tell("or straight on the Parquet files:")
    tell(f"  parquetry sql --script --corpus {shlex.quote(root)} > corpus.sql")
    tell(f"  duckdb -init corpus.sql -c {_EXAMPLE}")
    tell()
    tell("In Python:")
    tell(f"  from parquetry.storage.connect import connect; connect({root!r}).sql('FROM documents')")


def _print_wrapped(text: str) -> None:
    tell_wrapped(text, terminal_width(), first="  ", hanging="    ")


def _index_file(connection: Connection) -> str | None:
    """Return the index file; None for an index in memory, as for a version other than the newest."""
    ((path,),) = tuples(
        connection, "SELECT path FROM duckdb_databases() WHERE database_name = current_database() AND NOT internal"
    )
    return None if path is None else str(path)


def _segment_files(connection: Connection, index: str | None) -> list[str]:
    """Return the files with the rest of an index, to be attached before it is used."""
    if index is None:
        return []
    return [str(segment_file(Path(index).parent, each.name)) for each in segments_of(connection)]


def _views(connection: Connection) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of the public views and their columns."""
    found = tuples(
        connection,
        """SELECT DISTINCT view_name FROM duckdb_views()
        WHERE NOT internal AND schema_name <> 'parts' AND NOT starts_with(view_name, 'all_') ORDER BY 1""",
    )
    for (name,) in found:
        yield name, [column for column, *_ in tuples(connection, f"DESCRIBE {name}")]


def _macros(connection: Connection) -> Iterator[str]:
    """Yield the shortest call of each search macro, and of `embed`."""
    found = tuples(
        connection,
        """SELECT function_name, arg_min(parameters, len(parameters)) FROM duckdb_functions()
        WHERE NOT internal AND starts_with(function_name, 'search_') GROUP BY 1 ORDER BY 1""",
    )
    for name, parameters in found:
        yield f"{name}({', '.join(parameters)})"
    if tuples(connection, "SELECT 1 FROM duckdb_functions() WHERE function_name = 'embed'"):
        yield "embed(text)"
