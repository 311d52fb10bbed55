"""Reading the Delta tables without DuckDB, by the documented join, gives the rows of DuckDB's views."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from parquetry.errors import SettingsError
from parquetry.storage.lake.raw_tables import CHUNKS_QUERY, DOCUMENTS_QUERY, raw_tables
from tests.records import failed, row
from tests.storage.notebook import OAK

pytestmark = pytest.mark.slow

COLUMNS = ["chunk_id", "document_id", "namespace", "source", "uri", "filename", "title", "revision", "text"]


@pytest.fixture
def corpus(notebook):
    """Superseded, removed, moved, copied, failed and unpublished documents, several namespaces, and an entry."""
    shelf = notebook.shelf
    shelf.publish({"a.md": ["first a", "second a"], "b.md": ["b"], "c.md": ["c"]})
    shelf.publish({"a.md": ["new a"]})
    shelf.publish({"a.md": ["a of hr", "more of hr"]}, namespace="hr")
    shelf.publish({"d.md": ["d"]}, embedder="other@2", vectors=np.ones((1, 2)), namespace="hr")
    shelf.remove("b.md")
    (c,) = [each for each in shelf.rows() if each.path == "c.md"]
    copy = row("copy-of-c.md", revision=c.revision, embedder=c.embedder, chunks=1)
    shelf.lake.publish(shelf.lake.snapshot(), [copy, failed("broken.md")], "run-copy")
    shelf.write({"unpublished.md": ["of a run that failed"]})
    notebook.learn(OAK)
    return shelf


def by_views(shelf, version=None):
    with shelf.connect(version) as connection:
        documents = connection.execute("SELECT document_id, sequence, status FROM documents ORDER BY ALL").fetchall()
        chunks = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM chunks ORDER BY ALL").fetchall()
    return documents, chunks


def by_sql(tables):
    """Run the queries over the files with Polars."""
    context = pl.SQLContext({name: pl.scan_parquet(tables.files[name]) for name in ("documents", "chunks")})
    documents = context.execute(DOCUMENTS_QUERY).select("document_id", "sequence", "status").collect()
    chunks = context.execute(CHUNKS_QUERY).select(COLUMNS).collect()
    return sorted(documents.rows()), sorted(chunks.rows())


def by_expressions(tables, version=None):
    """Build the documented expressions over the Delta tables."""
    history = pl.scan_delta(tables.addresses["documents"], version=version)
    documents = history.filter(pl.col("sequence") == pl.col("sequence").max().over("namespace", "document_id")).filter(
        ~pl.col("removed"), ~pl.col("media_type").fill_null("").str.starts_with("application/vnd.parquetry.")
    )
    chunks = pl.scan_delta(tables.addresses["chunks"]).join(documents, on="revision").collect()
    return sorted(documents.select("document_id", "sequence", "status").collect().rows()), len(chunks)


def test_joins_in_polars_give_what_duckdb_shows(corpus):
    documents, chunks = by_views(corpus)
    assert sorted(text for *_, text in chunks) == ["a of hr", "c", "c", "d", "more of hr", "new a"]
    assert len(documents) == 6
    tables = raw_tables(str(corpus.root))
    # The count of a reader without the join.
    assert pl.scan_delta(tables.addresses["chunks"]).select(pl.len()).collect().item() == 10
    assert by_sql(tables) == (documents, chunks)
    assert by_expressions(tables) == (documents, len(chunks))


def test_queries_run_in_duckdb_over_the_same_files(corpus):
    tables = raw_tables(str(corpus.root))
    with corpus.connect() as connection:
        connection.execute("DROP VIEW chunks; DROP VIEW documents CASCADE")
        for name in ("documents", "chunks"):
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet({list(tables.files[name])!r})")
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM ({CHUNKS_QUERY}) ORDER BY ALL").fetchall()
    assert found == by_views(corpus)[1]


@pytest.mark.parametrize("version", range(1, 8))
def test_every_version_is_read_with_the_chunks_of_the_newest(corpus, version):
    tables = raw_tables(str(corpus.root), version)
    assert tables.version == version
    documents, chunks = by_views(corpus, version)
    assert by_sql(tables) == (documents, chunks)
    assert by_expressions(tables, version) == (documents, len(chunks))


def test_changed_permissions_and_moves_leave_one_row_of_each_document(corpus):
    (known,) = [each for each in corpus.rows() if each.path == "d.md"]
    moved = replace(known, path="moved.md", filename="moved.md")
    corpus.lake.publish(corpus.lake.snapshot(), [moved], "run-move")
    assert by_sql(raw_tables(str(corpus.root))) == by_views(corpus)


def test_program_that_scans_with_polars_ends_in_order(corpus):
    """With deltalake's `to_pyarrow_table()` the process would abort at its end."""
    code = f"import polars as pl; print(pl.scan_delta({str(corpus.root / 'chunks')!r}).collect().height)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10\n", "")


def test_there_is_no_corpus_or_no_such_version(tmp_path, shelf):
    with pytest.raises(SettingsError, match="no corpus at"):
        raw_tables(str(tmp_path / "nowhere"))
    with pytest.raises(SettingsError, match="has no version 7; it has 0 to 0"):
        raw_tables(str(shelf.root), 7)
