"""Rows of an export are written a part at a time, and the parts make no difference to what is exported."""

import duckdb
import pyarrow.parquet as pq
import pytest

from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.search import sorted_rows
from parquetry.storage.search.export import export_corpus
from parquetry.storage.search.filters import Caller, Filters, select_visible
from parquetry.storage.search.sorted_rows import bounds_of_parts, write_sorted
from tests.storage.shelf import Shelf

KEYS = ("revision", "chunk_index")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("many") / "corpus")
    for group in range(6):
        shelf.publish({f"oak-{group}-{n}.md": [f"oak {group} {n} {part}" for part in range(n)] for n in range(1, 8)})
    shelf.publish({"none.md": []})
    return shelf.lake.snapshot()


def visible(corpus):
    connection = connect_snapshot(corpus)
    select_visible(connection, Filters(caller=Caller()), "published", ["revision", "chunks"])
    return connection


def test_no_part_has_many_more_chunks_than_are_to_be_in_memory(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(sorted_rows, "PART_CHUNKS", 10)
    with visible(corpus) as connection:
        files = write_sorted(connection, "chunks", KEYS, bounds_of_parts(connection), tmp_path)
    tables = [pq.read_table(file) for file in files]
    assert len(files) > 10
    assert max(table.num_rows for table in tables) < 10 + 7
    keys = [(row["revision"], row["chunk_index"]) for table in tables for row in table.to_pylist()]
    assert keys == sorted(keys)
    assert len(keys) == 6 * sum(range(1, 8))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"chunks-{n:05d}.parquet" for n in range(len(files))]


def test_number_of_parts_is_bounded(corpus, monkeypatch):
    monkeypatch.setattr(sorted_rows, "PART_CHUNKS", 1)
    monkeypatch.setattr(sorted_rows, "MOST_PARTS", 5)
    with visible(corpus) as connection:
        assert 2 <= len(bounds_of_parts(connection)) < 5


def test_export_in_parts_has_the_rows_of_one_in_one_part(corpus, tmp_path, monkeypatch):
    exports = []
    for part in (10_000, 10):
        monkeypatch.setattr(sorted_rows, "PART_CHUNKS", part)
        path = export_corpus(corpus, Filters(), tmp_path / str(part), "english").path
        with duckdb.connect(str(path), read_only=True) as connection:
            exports.append([connection.sql(f"FROM {table} ORDER BY ALL").fetchall() for table in TABLES])
    assert exports[0] == exports[1]
    assert len(exports[0][0]) == 43


TABLES = ("parts.documents", "segment.chunks", "segment.postings", "parts.words", "parts.texts", "parts.notes")
