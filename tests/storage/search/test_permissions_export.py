"""An export, or the SQL of a caller, contains only what the caller may see and reveals nothing else."""

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from parquetry.errors import SettingsError
from parquetry.model import Access
from parquetry.storage.database import QueryError, query
from parquetry.storage.index.open_index import attached
from parquetry.storage.lake.lake import Lake
from parquetry.storage.search.export import export_corpus, scoped
from parquetry.storage.search.filters import Caller, Filters
from tests.storage.crowd import Crowd, answers, may_see
from tests.storage.shelf import EMBEDDER, Shelf

pytestmark = pytest.mark.slow

ADA = Caller("user-1", "org-1")
SECRET = "zanzibar"


def forbid(crowd, number):
    """Publish documents of others, with words, names and titles that only they have."""
    crowd.text = lambda: f"{SECRET} oaka oaka"
    crowd.properties = lambda access: {
        "access": access,
        "title": f"{SECRET} title",
        "filename": f"{SECRET}.md",
        "metadata": {SECRET: SECRET},
        "run_id": f"{SECRET}-run",
    }
    crowd.publish(number, "hr", "docs", lambda: Access("individual", user_id=SECRET, tags=(SECRET,)))
    crowd.shelf.publish({f"{SECRET}.md": [SECRET]}, namespace=SECRET, access=Access("organization", org_id=SECRET))
    run = {"run_id": f"{SECRET}-run", "kind": "refresh", "status": "completed", "error": SECRET}
    crowd.shelf.lake.record(run, [])


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    return Crowd(Shelf(tmp_path_factory.mktemp("exported") / "corpus"), documents=200, seed=8)


@pytest.fixture(scope="module")
def exported(crowd, tmp_path_factory):
    """Export a file for one caller; return also its content before others' documents were published."""
    folder = tmp_path_factory.mktemp("handed")
    before = everything(export_corpus(crowd.shelf.lake.snapshot(), Filters(caller=ADA), folder / "before", "none").path)
    allowed = [chunk for chunk in crowd.chunks if may_see(ADA, chunk.row)]
    forbid(crowd, 40)
    done = export_corpus(crowd.shelf.lake.snapshot(), Filters(caller=ADA), folder / "after", "none")
    return done, allowed, before


def everything(path):
    """Return every row of every table, except the version."""
    with attached(path, read_only=True) as connection:
        tables = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'ix' ORDER BY ALL"
        ).fetchall()
        rows = {
            f"{schema}.{table}": connection.execute(f"SELECT rowid, * FROM {schema}.{table} ORDER BY rowid").fetchall()
            for schema, table in tables
        }
        views = connection.execute("SELECT sql FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()
    # The order in which a join returns documents is random.
    rows["parts.documents"] = sorted(row[1:] for row in rows["parts.documents"])
    rows["parts.meta"] = [row for row in rows["parts.meta"] if row[1] != "version"]
    return rows, views


def test_export_holds_every_visible_document_and_no_other(exported):
    done, allowed, _ = exported
    with attached(done.path, read_only=True) as connection:
        found = connection.execute("SELECT document_id, text FROM chunks ORDER BY ALL").fetchall()
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM texts), (FROM (SELECT count(*) FROM runs))"
        ).fetchall()
        publishes = connection.execute("SELECT DISTINCT sequence FROM documents").fetchall()
    assert found == sorted((chunk.row.document_id, chunk.text) for chunk in allowed)
    assert (done.documents, done.chunks) == (len({chunk.path for chunk in allowed}), len(allowed))
    assert counts == [(done.documents, 0)]
    assert publishes == [(1,)], "how often was published tells of others"


def test_forbidden_documents_change_no_row_of_an_export(exported):
    """No word, number, statistic, file name or run of theirs, and not the number of publishes."""
    done, _, before = exported
    after = everything(done.path)
    assert set(after[0]) >= {"parts.documents", "segment.chunks", "segment.postings", "parts.words", "parts.texts"}
    assert after == before
    assert SECRET.encode() not in done.path.read_bytes()


def test_export_answers_as_the_corpus_answers_the_caller(exported, crowd):
    done, _, _ = exported
    queries = [(mode, *crowd.query(), 20) for mode in ("vector", "text", "hybrid") * 5]
    with crowd.shelf.index() as connection:
        told = list(answers(connection, Filters(caller=ADA), crowd.shelf.settings, queries))
    with attached(done.path, read_only=True) as connection:
        handed = list(answers(connection, Filters(), crowd.shelf.settings, queries))
    assert [[hit.score for hit in hits] for hits, _ in handed] == [[hit.score for hit in hits] for hits, _ in told]
    assert [[hit.row for hit in hits] for hits, _ in handed] == [[hit.row for hit in hits] for hits, _ in told]


def test_export_opens_in_the_plain_duckdb_program(exported):
    done, allowed, _ = exported
    program = Path(sys.executable).with_name("duckdb")
    vector = "[1, 0, 0, 1]::FLOAT[4]"
    for statement, expected in [
        ("SELECT count(*) FROM chunks", str(len(allowed))),
        ("SELECT count(*) FROM search_text('oaka elmb', 3)", "3"),
        (f"SELECT count(*) FROM search_vector({vector}, 4)", "4"),
        (f"SELECT count(*) FROM search_hybrid('oaka', {vector}, 5)", "5"),
        (f"SELECT count(*) FROM search_text('{SECRET}', 5)", "0"),
    ]:
        command = [program, "-readonly", "-csv", "-noheader", str(done.path), "-c", statement]
        finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (finished.stdout.strip(), finished.stderr) == (expected, ""), statement


def test_filters_narrow_an_export(crowd, tmp_path):
    filters = Filters(caller=ADA, namespaces=("it",), where="source = 'wiki'")
    done = export_corpus(crowd.shelf.lake.snapshot(), filters, tmp_path, "none")
    expected = {
        c.path for c in crowd.chunks if may_see(ADA, c.row) and (c.row.namespace, c.row.source) == ("it", "wiki")
    }
    assert done.documents == len(expected) > 0


def test_export_again_replaces_and_what_is_no_export_stays(crowd, tmp_path):
    snapshot = crowd.shelf.lake.snapshot()
    first = export_corpus(snapshot, Filters(caller=ADA), tmp_path, "none")
    again = export_corpus(snapshot, Filters(caller=Caller()), tmp_path, "none")
    assert again.documents < first.documents
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.duckdb"]
    other = tmp_path / "mine"
    other.mkdir()
    with duckdb.connect(str(other / "corpus.duckdb")) as connection:
        connection.execute("CREATE TABLE texts AS SELECT 1")
    before = (other / "corpus.duckdb").read_bytes()
    with pytest.raises(SettingsError, match="is not an export of Parquetry and is left alone"):
        export_corpus(snapshot, Filters(caller=ADA), other, "none")
    assert (other / "corpus.duckdb").read_bytes() == before


def test_nothing_visible_is_an_empty_export(shelf, tmp_path):
    shelf.publish({"a.md": ["oak"]}, access=Access("individual", user_id="bob"))
    done = export_corpus(Lake(str(shelf.root)).snapshot(), Filters(caller=ADA), tmp_path / "out", "english")
    assert (done.documents, done.chunks) == (0, 0)
    with attached(done.path, read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM search_text('oak', 5)").fetchall() == [(0,)]
        assert connection.execute("SELECT count(*) FROM parts.words WHERE word = 'oak'").fetchall() == [(0,)]


# --- SQL of a caller


@pytest.fixture(scope="module")
def session(crowd, exported):
    connection = scoped(crowd.shelf.lake.snapshot(), Filters(caller=ADA), "none")
    yield connection
    connection.close()


def test_sql_of_a_caller_sees_what_is_theirs(session, exported):
    _, allowed, _ = exported
    assert query(session, "SELECT count(*) FROM chunks") == (["count_star()"], [(len(allowed),)])
    _, found = query(session, "SELECT text FROM search_text('oaka', 50)")
    assert found
    assert all("oaka" in text for (text,) in found)


@pytest.mark.parametrize(
    "statement",
    [
        "FROM read_text('/etc/hostname')",
        "FROM read_parquet('{corpus}/documents/*.parquet')",
        "FROM '{corpus}/documents/*.parquet'",
        "FROM glob('{corpus}/*')",
        "FROM parquet_metadata('{corpus}/documents/x.parquet')",
        "COPY documents TO '{corpus}/stolen.csv'",
        "EXPORT DATABASE '{corpus}/stolen'",
        "ATTACH '{corpus}/index/index-1.duckdb' AS other",
        "ATTACH 'https://localhost/other.duckdb' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "SET lock_configuration = false",
        "SET python_enable_replacements = true",
        "SET temp_directory = '{corpus}'",
        "SET allowed_directories = ['/']",
        "CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')",
        "SELECT getenv('HOME')",
        "FROM query('FROM read_text(''/etc/hostname'')')",
        "FROM document_history",
        "FROM all_chunks",
    ],
)
def test_sql_of_a_caller_reaches_nothing_else(session, crowd, statement):
    with pytest.raises(QueryError):
        query(session, statement.format(corpus=crowd.shelf.root))
    assert not list(crowd.shelf.root.glob("stolen*"))


def test_sql_of_a_caller_reads_no_variable_of_the_program(session):
    lying_about = np.arange(3)
    with pytest.raises(duckdb.CatalogException):
        session.execute("FROM lying_about")
    assert len(lying_about) == 3


def test_no_table_of_a_session_tells_of_others(session):
    """Not even through leftovers of how it was built."""
    _, tables = query(session, "SELECT database_name, schema_name, table_name FROM duckdb_tables()")
    assert len(tables) > 10
    for names in tables:
        _, rows = query(session, f"SELECT * FROM {'.'.join(names)}")
        assert SECRET not in str(rows), names
    assert SECRET not in str(query(session, "FROM duckdb_views()"))


def test_embedders_of_others_are_not_known(shelf):
    shelf.publish({"a.md": ["oak"]})
    shelf.publish({"b.md": ["oak"]}, embedder="secret@2", access=Access("individual", user_id="bob"))
    with scoped(shelf.lake.snapshot(), Filters(caller=ADA), "none") as connection:
        assert query(connection, "SELECT DISTINCT embedder FROM chunks")[1] == [(EMBEDDER,)]
        assert query(connection, "SELECT embedder FROM parts.spaces")[1] == [(EMBEDDER,)]
