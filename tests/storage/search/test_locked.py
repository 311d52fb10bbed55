"""Untrusted SQL reads the corpus and reaches nothing else, wherever the corpus is stored."""

import os
import posixpath
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pytest

from parquetry.errors import StorageError
from parquetry.settings.sections import Settings
from parquetry.storage.connect import open_index, with_views
from parquetry.storage.database import QueryError, open_duckdb, query
from parquetry.storage.lake.lake import SEARCHED
from parquetry.storage.search import locked
from parquetry.storage.search.export import scoped
from parquetry.storage.search.filters import Caller, Filters
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

WORD = "zanzibar"
"""word in a file outside the corpus"""


@contextmanager
def read_only(shelf, version=None):
    """Return the connection that `parquetry sql --read-only` uses."""
    snapshot = shelf.lake.snapshot(version, needed=SEARCHED)
    settings = Settings(search=shelf.settings)
    opened = open_index(shelf.lake, snapshot, version, settings)
    opened, _ = with_views(shelf.lake, snapshot, version, settings, opened, locked=True)
    try:
        yield opened.connection
    finally:
        opened.close()


@contextmanager
def of_caller(shelf):
    """Return the connection that `parquetry sql --user` uses."""
    with scoped(shelf.lake.snapshot(), Filters(caller=Caller("ada")), "none") as connection:
        yield connection


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Fill the current folder with an attacker's targets, and set a secret that DuckDB would find by itself."""
    folder = tmp_path / "outside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    # DuckDB spills here what does not fit in memory, for every program that runs in this folder.
    (folder / ".tmp").mkdir()
    for path in (folder / "notes.csv", folder / ".tmp" / "notes.csv"):
        path.write_text(f"word\n{WORD}\n", "utf-8")
    with duckdb.connect(str(folder / "other.duckdb")) as connection:
        connection.execute(f"CREATE TABLE notes AS SELECT '{WORD}' AS word")
        connection.execute(f"COPY notes TO '{folder / 'notes.parquet'}'")
        connection.execute(f"CREATE PERSISTENT SECRET treasure (TYPE http, BEARER_TOKEN '{WORD}')")
    assert list(folder.rglob("*.duckdb_secret"))
    return folder


@pytest.fixture(params=["folder", "store"])
def attacked(request, tmp_path, monkeypatch):
    """Create a corpus of two versions in a folder, or on an object store."""
    if request.param == "folder":
        shelf = Shelf(tmp_path / "corpus")
    else:
        store = request.getfixturevalue("small_store")
        store.reset()
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        shelf = Shelf("s3://bucket/kb")
    shelf.publish({"a.md": ["one oak", "two"]})
    shelf.publish({"b.md": ["three"]})
    return shelf


ANSWERED = {
    "SELECT count(*) FROM chunks": 3,
    "SELECT count(*) FROM texts": 2,
    "SELECT count(*) FROM search_text('oak', 5)": 1,
    "WITH a AS (FROM documents) SELECT count(*) FROM a": 2,
    "SELECT count(*) FROM duckdb_secrets()": 0,
}
ONLY_IN_FILES = {
    "SELECT count(*) FROM document_history": 2,
    "SELECT count(*) FROM all_texts": 2,
    "SELECT count(*) FROM runs": 0,
    "SELECT count(*) FROM decisions": 0,
}


def test_whole_corpus_is_read(attacked):
    with read_only(attacked) as connection:
        for statement, found in {**ANSWERED, **ONLY_IN_FILES}.items():
            if "secrets" not in statement:
                assert query(connection, statement)[1] == [(found,)], statement
    with read_only(attacked, 1) as connection:
        assert query(connection, "SELECT count(*) FROM document_history")[1] == [(1,)]


REACHING = [
    # other files
    "FROM read_text('{out}/notes.csv')",
    "FROM read_blob('{out}/notes.csv')",
    "FROM read_csv('{out}/notes.csv')",
    "FROM read_csv('notes.csv')",
    "FROM read_json('{out}/notes.csv')",
    "FROM sniff_csv('{out}/notes.csv')",
    "FROM '{out}/notes.csv'",
    "FROM 'notes.csv'",
    "FROM '/etc/passwd'",
    "FROM read_text('/etc/passwd')",
    "FROM read_text('/proc/self/environ')",
    "FROM read_csv('/dev/stdin')",
    "FROM read_parquet('{out}/notes.parquet')",
    "FROM parquet_metadata('{out}/notes.parquet')",
    "FROM parquet_kv_metadata('{out}/notes.parquet')",
    "FROM read_duckdb('{out}/other.duckdb')",
    "FROM glob('{out}/*')",
    "FROM glob('*')",
    "FROM query('FROM read_text(''{out}/notes.csv'')')",
    "FROM query_table(['{out}/notes.csv'])",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{out}/notes.csv'')'))",
    # the folder that DuckDB spills to
    "FROM '.tmp/notes.csv'",
    "FROM '{out}/.tmp/notes.csv'",
    "FROM glob('{out}/.tmp/*')",
    "COPY documents TO '.tmp/stolen.csv'",
    "COPY documents TO '{out}/.tmp/stolen.csv'",
    "ATTACH '{out}/.tmp/stolen.duckdb' AS other",
    # files of the corpus that are not of this version, by path and through readable views
    "FROM '{root}/documents/*.parquet'",
    "FROM glob('{root}/*')",
    "FROM read_text('{root}/documents/_delta_log/00000000000000000000.json')",
    "FROM read_text('{first}/../../../../../../../../../../etc/passwd')",
    "FROM read_text('corpus://{out}/notes.csv')",
    "FROM read_text('file://{out}/notes.csv')",
    # writing
    "COPY documents TO '{out}/stolen.csv'",
    "COPY documents TO 'stolen.csv'",
    "COPY documents TO '{root}/stolen.csv'",
    "COPY documents TO '/dev/stdout'",
    "WITH a AS (COPY documents TO '{out}/stolen.csv') SELECT 1",
    "EXPLAIN ANALYZE COPY documents TO '{out}/stolen.csv'",
    "EXPORT DATABASE '{out}/stolen'",
    "IMPORT DATABASE '{out}'",
    "ATTACH '{out}/stolen.duckdb' AS other",
    "ATTACH '{out}/other.duckdb' AS other",
    "ATTACH '{out}/other.duckdb' AS other (READ_ONLY)",
    "CALL enable_logging(storage := 'file', storage_path := '{out}/stolen')",
    "FROM enable_logging(storage_path := '{out}/stolen')",
    "FROM enable_profiling(save_location := '{out}/stolen')",
    "SET profiling_output = '{out}/stolen'",
    "PRAGMA profiling_output = '{out}/stolen'",
    "PRAGMA enable_profiling = 'json'",
    "SET log_query_path = '{out}/stolen'",
    # the network
    "FROM 'http://127.0.0.1:{port}/notes.csv'",
    "FROM read_parquet('https://127.0.0.1:{port}/notes.parquet')",
    "FROM read_text('s3://127.0.0.1:{port}/notes')",
    "ATTACH 'http://127.0.0.1:{port}/other.duckdb' AS other",
    "COPY documents TO 'http://127.0.0.1:{port}/stolen.csv'",
    # extensions, secrets, settings
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:{port}'",
    "LOAD httpfs",
    "LOAD '{out}/notes.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "CREATE PERSISTENT SECRET (TYPE http, BEARER_TOKEN 'b')",
    "DROP PERSISTENT SECRET treasure",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET lock_configuration = false",
    "SET allowed_directories = ['/']",
    "SET allowed_paths = ['/etc/passwd']",
    "SET temp_directory = '{out}'",
    "SET home_directory = '{out}'",
    "SET secret_directory = '{out}'",
    "SET file_search_path = '{out}'",
    "SET extension_directories = ['{out}']",
    "SET custom_extension_repository = 'http://127.0.0.1:{port}'",
    "SET python_enable_replacements = true",
    "SET memory_limit = '1TB'",
    "SET max_execution_time = 0",
    "PRAGMA memory_limit = '1TB'",
    # the program
    "SELECT getenv('HOME')",
    "FROM lying_about",
    "SELECT embed('oak')",
    "FROM arrow_scan(1::POINTER, 1::POINTER, 1::POINTER)",
    # several statements at once
    "SELECT 1; COPY documents TO '{out}/stolen.csv'",
    "SET allowed_directories = ['/']; FROM read_text('{out}/notes.csv')",
    "PREPARE p AS FROM read_text('{out}/notes.csv'); EXECUTE p",
    "CREATE MACRO m() AS TABLE FROM read_text('{out}/notes.csv')",
]


def held(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def attack(connection, shelf, outside, port):
    """Run every statement; return those that were not refused."""
    lying_about = np.arange(3)
    first = shelf.lake.snapshot().files["chunks"][0]
    answered = []
    for statement in REACHING:
        text = statement.format(out=outside, root=shelf.root, first=first, port=port)
        refusal = ""
        try:
            _, found = query(connection, text)
            answered.append((statement, found))
        except QueryError as error:
            refusal = str(error)
        assert WORD not in refusal, statement
        assert "\n" not in refusal, statement
    assert len(lying_about) == 3
    return answered


@pytest.fixture
def port():
    """Yield a port on which any connection fails the test."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server.getsockname()[1]
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("session", [read_only, of_caller], ids=["whole corpus", "of a caller"])
def test_nothing_beside_the_corpus_is_reached(session, attacked, outside, port):
    before = held(outside)
    corpus = held(attacked.root) if isinstance(attacked.root, Path) else {}
    with session(attacked) as connection:
        assert attack(connection, attacked, outside, port) == []
    assert held(outside) == before
    if corpus:
        after = held(attacked.root)  # the program itself updates the index
        assert {path: content for path, content in after.items() if "index" not in path.parts} == {
            path: content for path, content in corpus.items() if "index" not in path.parts
        }


@pytest.mark.parametrize("session", [read_only, of_caller], ids=["whole corpus", "of a caller"])
def test_secrets_that_are_kept_for_duckdb_or_in_the_environment_are_not_told(session, attacked, outside, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://user:{WORD}@127.0.0.1:1")
    for name in ("PASSWORD", "DUCKDB_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, WORD)
    with session(attacked) as connection:
        for statement in (
            "FROM duckdb_secrets()",
            "FROM which_secret('http://a', 'http')",
            "FROM duckdb_settings()",
            "RESET http_proxy",
        ):
            try:
                found = str(query(connection, statement))
            except QueryError as error:
                found = str(error)
            assert WORD not in found
            assert "treasure" not in found


OVERWRITING = [
    "COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet)",
    "COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (SELECT 1 AS a) TO '{file}' (FORMAT csv, USE_TMP_FILE false)",
    "WITH a AS (COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)) SELECT 1",
    "EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (SELECT 1 AS a) TO '{folder}' (FORMAT parquet, OVERWRITE, PARTITION_BY a)",
    "ATTACH '{file}' AS other (TYPE duckdb)",
    "ATTACH '{index}' AS other; DROP SCHEMA other.parts CASCADE",
    "CREATE OR REPLACE TABLE ix.parts.chunks AS SELECT 1",
    "DELETE FROM parts.chunks",
    "WITH a AS (DELETE FROM parts.chunks RETURNING *) SELECT count(*) FROM a",
    "DROP VIEW documents",
    "ALTER TABLE parts.chunks ADD COLUMN stolen INTEGER",
    "COPY FROM DATABASE memory TO ix",
]
"""writes to what may be read; DuckDB itself does not distinguish them"""


def test_files_of_the_corpus_that_are_read_cannot_be_written(attacked, outside):
    file = attacked.lake.snapshot().files["chunks"][0]
    with read_only(attacked) as connection:
        ((index,),) = query(connection, "SELECT path FROM duckdb_databases() WHERE database_name = 'ix'")[1]
        for statement in OVERWRITING:
            for written in (file, f"corpus://{file}"):
                text = statement.format(file=written, folder=posixpath.dirname(written), index=index)
                with pytest.raises(QueryError) as raised:
                    query(connection, text)
                assert "Traceback" not in str(raised.value), statement
        assert query(connection, "SELECT count(*) FROM chunks")[1] == [(3,)]
        assert query(connection, "SELECT count(*) FROM document_history")[1] == [(2,)]
    with attacked.connect() as connection:
        assert query(connection, "SELECT count(*) FROM all_chunks")[1] == [(3,)]


@pytest.mark.parametrize("session", [read_only, of_caller], ids=["whole corpus", "of a caller"])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM range(1000000000) AS a, range(1000000000) AS b WHERE a.range + b.range = -1",
        "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r) SELECT max(a) FROM r",
    ],
    ids=["product", "recursion"],
)
def test_statement_without_an_end_is_stopped(session, statement, tmp_path, monkeypatch):
    monkeypatch.setattr(locked, "SECONDS", 1)
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": ["one oak", "two"]})
    with session(shelf) as connection:
        with pytest.raises(QueryError, match="it took longer than 1 s and was stopped"), locked.bounded():
            query(connection, statement)
        assert query(connection, "SELECT count(*) FROM chunks")[1] == [(2,)]


@pytest.mark.parametrize("session", [read_only, of_caller], ids=["whole corpus", "of a caller"])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT list(range) FROM range(100000000000)",
        "SELECT repeat('x', 10000000) FROM range(2048)",
        "SELECT range, range FROM range(100000000000)",
    ],
    ids=["counted by DuckDB", "values under way", "rows of the answer"],
)
def test_statement_that_would_take_all_memory_is_stopped(session, statement, tmp_path):
    """DuckDB bounds the memory that it counts, and the process limit bounds the rest."""
    Shelf(tmp_path / "corpus").publish({"a.md": ["one oak", "two"]})
    # Without memory, native code may end the process; the other tests must not end with it.
    names = f"{session.__name__}, {stop_for_memory.__name__}"
    code = f"import sys; from {__name__} import {names}; stop_for_memory({session.__name__}, *sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "corpus"), statement],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "stopped\n", "")
    assert not list(Path.cwd().glob(".tmp/duckdb_temp*"))


def stop_for_memory(session, corpus, statement):
    """Run a statement in little memory, and another one after it."""
    locked.WORKING_MEMORY = 64 << 20
    locked.MEMORY = 256 << 20
    with session(Shelf(corpus)) as connection:
        with pytest.raises(QueryError, match=r"[Mm]emory"), locked.bounded():
            query(connection, statement)
        assert query(connection, "SELECT count(*) FROM chunks")[1] == [(2,)]
    print("stopped")


@pytest.mark.parametrize("session", [read_only, of_caller], ids=["whole corpus", "of a caller"])
def test_duckdb_itself_is_bounded_for_a_statement(session, tmp_path, monkeypatch):
    """DuckDB stops before the process has no memory left for the answer."""
    monkeypatch.setattr(locked, "WORKING_MEMORY", 100 << 20)
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": ["one oak", "two"]})
    with session(shelf) as connection:
        ((limit,),) = query(connection, "SELECT current_setting('memory_limit')")[1]
    size, unit = limit.split()
    assert unit == "MiB"
    assert 100 <= float(size) < 500


def test_what_a_caller_may_see_and_does_not_fit_in_memory_is_told(tmp_path, monkeypatch):
    """It is not spilled to disk: statements could read and write beside it."""

    def small():
        connection = open_duckdb()
        connection.execute("SET memory_limit = '24MB'")
        return connection

    monkeypatch.setattr("parquetry.storage.search.export.open_duckdb", small)
    monkeypatch.chdir(tmp_path)
    shelf = Shelf(tmp_path / "corpus")
    words = np.random.default_rng(1).integers(0, 1 << 40, (400, 2000))
    shelf.publish({f"{number}.md": [" ".join(map(str, row))] for number, row in enumerate(words)})
    with pytest.raises(StorageError, match="does not fit in memory; `parquetry export` writes it to a file"):
        scoped(shelf.lake.snapshot(), Filters(caller=Caller("ada")), "none")
    assert not list(tmp_path.glob(".tmp/*"))
