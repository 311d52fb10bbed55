"""All output of a program: every byte of every file, and every value in compressed ones."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow.parquet as pq


def everything_written(root: Path) -> Iterator[tuple[str, bytes]]:
    """Return name and content of every file below a folder; for Parquet files and databases also all values."""
    for file in sorted(root.rglob("*")):
        name = str(file.relative_to(root))
        yield f"name of {name}", name.encode()
        if not file.is_file():
            continue
        content = file.read_bytes()
        yield name, content
        if content.startswith(b"PAR1"):
            yield f"values of {name}", json.dumps(pq.read_table(file).to_pylist(), default=str).encode()
        elif file.suffix == ".duckdb":
            yield f"values of {name}", _in_duckdb(file)
        elif content.startswith(b"SQLite format 3"):
            yield f"values of {name}", _in_sqlite(file)


def holding(root: Path, secrets: dict[str, str]) -> list[str]:
    """Return the files that contain one of the named secrets, each with the secret's name."""
    return [
        f"{name}: {place}"
        for place, content in everything_written(root)
        for name, secret in secrets.items()
        if secret.encode() in content
    ]


def _in_duckdb(file: Path) -> bytes:
    with duckdb.connect(str(file), read_only=True) as connection:
        tables = connection.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        values = [connection.execute(f'SELECT * FROM "{schema}"."{table}"').fetchall() for schema, table in tables]
    return json.dumps(values, default=str).encode()


def _in_sqlite(file: Path) -> bytes:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        values = [connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names]
    return json.dumps(values, default=str).encode()
