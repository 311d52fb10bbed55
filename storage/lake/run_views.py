"""The runs of a corpus as they are now: those that failed publish no version, and no index holds them yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from parquetry.storage.database import Connection, open_duckdb, reading
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Table
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import NEWEST, scan_of

_VIEWS: Mapping[str, Table] = {"document_history": "documents", "runs": "runs", "failures": "failures"}


@contextmanager
def run_views(lake: Lake) -> Iterator[Connection]:
    """Yield a connection with the views `runs`, `failures`, `document_history` and `published`.

    Args:
        lake: the corpus.

    Raises:
        StorageError: it cannot be read.
    """
    snapshot = lake.snapshot(needed=list(_VIEWS.values()))
    with closing(open_duckdb()) as connection:
        filesystem_at(snapshot.layout.root).attach(connection)
        with reading():
            for name, table in _VIEWS.items():
                connection.execute(f"CREATE VIEW {name} AS {scan_of(snapshot, table)}")
            connection.execute(f"CREATE VIEW published AS {NEWEST.format(history='document_history')}")
        yield connection
