"""The views that analysts, searches and runs read."""

from dataclasses import replace

import pytest

from parquetry.errors import StorageError
from parquetry.storage.connect import connect
from parquetry.storage.database import QueryError, open_duckdb, query, reading, rows, sql_list
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.snapshot_views import script
from tests.records import failed, row

KNOWLEDGE = ("published", "entries", "entry_history", "decisions", "sessions")
NAMES = (
    "documents",
    "chunks",
    "texts",
    "notes",
    "quality",
    "pages",
    "runs",
    "failures",
    "searches",
    "document_history",
    *KNOWLEDGE,
)
VIEWS = {*NAMES, *(f"all_{table}" for table in TABLES[:-1])}


def all_of(connection, statement):
    return connection.execute(statement).fetchall()


def test_empty_corpus_has_every_view(shelf):
    with shelf.connect() as connection:
        views = {name for (name,) in all_of(connection, "SELECT view_name FROM duckdb_views() WHERE NOT internal")}
        assert views == VIEWS
        assert [all_of(connection, f"SELECT count(*) FROM {view}") for view in sorted(VIEWS)] == [[(0,)]] * len(VIEWS)


def test_columns_are_the_same_empty_or_not(shelf):
    def columns():
        with shelf.connect() as connection:
            found = all_of(connection, "SELECT table_name, column_name, data_type FROM information_schema.columns")
            return {(table, name): kind for table, name, kind in found}

    empty = columns()
    shelf.publish({"a.md": ["one"]})
    shelf.lake.record({"run_id": "r"}, [])
    full = columns()
    assert {key for key in empty if empty[key] != full[key]} == {("chunks", "vector"), ("texts", "vector")}
    assert {full["chunks", "vector"], full["texts", "vector"]} == {"FLOAT[4]"}


def test_documents_are_the_current_ones_and_history_has_them_all(shelf):
    shelf.publish({"a.md": ["one"], "b.md": ["two"]})
    shelf.publish({"a.md": ["three"]})
    shelf.remove("b.md")
    with shelf.connect() as connection:
        assert all_of(connection, "SELECT path, sequence FROM documents") == [("a.md", 2)]
        assert all_of(connection, "SELECT path, sequence, removed FROM document_history ORDER BY ALL") == [
            ("a.md", 1, False),
            ("a.md", 2, False),
            ("b.md", 1, False),
            ("b.md", 3, True),
        ]


def test_document_that_came_back_is_there_once(shelf):
    shelf.publish({"a.md": ["one"]})
    shelf.remove("a.md")
    shelf.publish({"a.md": ["two"]})
    assert shelf.texts() == {"a.md": ["two"]}


def test_failed_document_shows_its_last_good_chunks_and_a_skipped_one_none(shelf):
    shelf.publish({"a.md": ["good"], "b.md": ["old"]})
    good, old = shelf.rows()
    bad = replace(good, status="failed", error="extract/damaged: cut")
    empty = replace(old, status="skipped", revision=0)
    shelf.lake.publish(shelf.lake.snapshot(), [bad, empty, failed("c.md")], "run-x")
    assert shelf.texts() == {"a.md": ["good"]}


def test_copies_share_chunks_and_keep_their_own_names(shelf):
    shelf.publish({"a.md": ["shared"]})
    (original,) = shelf.rows()
    copy = replace(row("b.md"), revision=original.revision, embedder=original.embedder)
    shelf.lake.publish(shelf.lake.snapshot(), [copy], "run-x")
    with shelf.connect() as connection:
        found = all_of(connection, "SELECT chunk_id, filename, text FROM chunks ORDER BY filename")
    assert found == [
        (f"{original.document_id}-chunk-0", "a.md", "shared"),
        (f"{copy.document_id}-chunk-0", "b.md", "shared"),
    ]


def test_vectors_are_arrays_as_long_as_the_current_embedder_makes_them(shelf):
    shelf.publish({"a.md": ["one"]}, vectors=[[1, 0, 0, 0]])
    shelf.publish({"a.md": ["one"]}, embedder="other@2", vectors=[[3, 4]])
    with shelf.connect() as connection:
        assert all_of(connection, "SELECT typeof(vector), vector FROM chunks") == [("FLOAT[2]", (3.0, 4.0))]
        assert all_of(connection, "SELECT array_distance(vector, [0, 0]::FLOAT[2]) FROM chunks") == [(5.0,)]
        assert all_of(connection, "SELECT typeof(vector) FROM texts") == [("FLOAT[2]",)]
    with shelf.connect(1) as connection:
        assert all_of(connection, "SELECT typeof(vector) FROM chunks") == [("FLOAT[4]",)]


def test_document_that_lost_its_chunks_has_no_say_in_their_length(shelf):
    shelf.publish({"a.md": ["one"]}, vectors=[[1, 0, 0, 0]])
    shelf.publish({"b.md": ["two"]}, embedder="other@2", vectors=[[3, 4]])
    (_, emptied) = shelf.rows()
    shelf.lake.publish(shelf.lake.snapshot(), [replace(emptied, status="skipped", revision=0)], "run-x")
    with shelf.connect() as connection:
        assert all_of(connection, "SELECT typeof(vector) FROM chunks") == [("FLOAT[4]",)]


def test_vectors_of_several_lengths_are_lists(shelf):
    shelf.publish({"a.md": ["one"]}, vectors=[[1, 0, 0, 0]])
    shelf.publish({"b.md": ["one"]}, embedder="other@2", vectors=[[3, 4]], namespace="hr")
    with shelf.connect() as connection:
        assert all_of(connection, "SELECT typeof(vector), len(vector) FROM chunks ORDER BY 2") == [
            ("FLOAT[]", 2),
            ("FLOAT[]", 4),
        ]


def test_script_makes_the_same_views_elsewhere(shelf):
    shelf.publish({"it's.md": ["one"]})
    shelf.publish({"b.md": ["two"]})
    made = script(shelf.lake.snapshot())
    with open_duckdb() as elsewhere:
        elsewhere.execute(made)
        with shelf.connect() as connection:
            for view in ("documents", "chunks", "texts"):
                statement = f"SELECT * FROM {view} ORDER BY ALL"
                assert all_of(elsewhere, statement) == all_of(connection, statement) != []


def test_connection_fetches_nothing(shelf):
    with shelf.connect() as connection:
        settings = dict(
            all_of(connection, "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%extensions'")
        )
        assert settings == {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        assert all_of(connection, "SELECT current_setting('TimeZone')") == [("UTC",)]


def test_connect_opens_a_folder(shelf):
    shelf.publish({"a.md": ["one"]})
    with connect(str(shelf.root)) as connection:
        assert rows(connection, "SELECT path, tags FROM documents WHERE path = $1", ["a.md"]) == [
            {"path": "a.md", "tags": []}
        ]
    with connect(str(shelf.root), version=0) as connection:
        assert rows(connection, "FROM documents") == []


def test_statement_gives_names_and_rows(shelf):
    with shelf.connect() as connection:
        assert query(connection, "SELECT 1 AS one, 'x' AS two") == (["one", "two"], [(1, "x")])
        assert query(connection, "CREATE TEMP TABLE t (i INTEGER)")[1] == []


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELEC 1", "Parser Error"),
        ("SELECT nothing FROM documents", "Binder Error"),
        ("FROM nowhere", "Catalog Error"),
        ("SELECT 1/0::INTEGER, 'x'::INTEGER", "Conversion Error"),
        ("", "there is no statement"),
        (" -- only a comment", "there is no statement"),
    ],
)
def test_wrong_statement_is_one_line(shelf, statement, problem):
    with shelf.connect() as connection:
        with pytest.raises(QueryError, match=problem) as raised:
            query(connection, statement)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "noise"])
@pytest.mark.parametrize("table", ["documents", "chunks"])
def test_damaged_file_is_one_line_that_names_it(shelf, table, damage):
    shelf.publish({"a.md": ["one"]})
    (file,) = (shelf.root / table).glob("*.parquet")
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": content[:50], "noise": b"\x00" * len(content)}[damage])
    with pytest.raises(StorageError, match=f"the corpus is damaged: {file} is ") as raised:
        shelf.search("one")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", ["plain", "it's", "''", 'a"b', "back\\slash", "new\nline", "größe"])
def test_strings_stay_strings_in_sql(value):
    with open_duckdb() as connection, reading():
        assert all_of(connection, f"SELECT {sql_list([value, value])}") == [([value, value],)]


def test_what_duckdb_makes_of_an_interrupt_is_one_again():
    """DuckDB's error would otherwise count as damage to the corpus, or be swallowed."""
    with pytest.raises(KeyboardInterrupt), reading():
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="something else"), reading():
        raise RuntimeError("something else")
