"""Searches every file below a folder for a word, compressed or not."""

import json

import duckdb
import pyarrow.parquet as pq


def telling(folder, word):
    """Return the files that contain a word, compressed or not."""
    found = set()
    for file in (path for path in folder.rglob("*") if path.is_file()):
        told = str(file).lower().encode() + file.read_bytes().lower()
        if file.suffix == ".parquet" and "_delta_log" not in file.parts:
            told += json.dumps(pq.read_table(file).to_pylist(), default=str).lower().encode()
        if file.suffix == ".duckdb":
            with duckdb.connect(str(file), read_only=True) as connection:
                tables = connection.execute(
                    "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
                ).fetchall()
                for schema, table in tables:
                    told += str(connection.execute(f'FROM "{schema}"."{table}"').fetchall()).lower().encode()
        if word.encode() in told:
            found.add(file.relative_to(folder).as_posix())
    return found
