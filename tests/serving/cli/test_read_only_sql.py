"""`parquetry sql --read-only`: the mode for agents, and its messages about refused statements."""

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_read_only_sql_answers_as_sql_does(desk):
    for statement in (
        "SELECT path, status FROM documents ORDER BY path",
        "SELECT filename, round(score, 6) FROM search_text('oak', 3)",
        "SELECT count(*) FROM document_history",
        "SELECT kind, status FROM runs ORDER BY started_at",
        "DESCRIBE documents",
    ):
        assert desk("sql", "--read-only", "--json", statement).json == desk("sql", "--json", statement).json
    assert "oak.txt" in desk("sql", "--read-only", "--version", "1", "FROM documents").stdout


@pytest.mark.parametrize("options", [["--read-only"], ["--user", "ada"], ["--read-only", "--user", "ada"]])
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("FROM read_text('parquetry.toml')", "Permission Error: Cannot access file"),
        ("FROM read_csv('.tmp/spilled.csv')", "Permission Error: Cannot access file"),
        ("FROM '/etc/passwd'", "does not exist"),
        ("COPY documents TO 'stolen.csv'", "Permission Error: Cannot access file"),
        ("WITH a AS (COPY documents TO 'stolen.csv') SELECT 1", "Permission Error: Cannot access file"),
        ("ATTACH 'stolen.duckdb' AS other", "Permission Error: Cannot access file"),
        ("SET enable_external_access = true", "the configuration has been locked"),
        ("INSTALL httpfs", "Permission Error"),
        ("SELECT getenv('HOME')", "does not exist"),
        ("SELECT embed('oak')", "does not exist"),
        ("SELECT 1; COPY documents TO 'stolen.csv'", "Permission Error: Cannot access file"),
        ("SELECT titel FROM documents", "not found in FROM clause"),
        ("", "there is no statement in it"),
    ],
)
def test_refused_statement_is_one_line_and_exit_code_2(desk, options, statement, said):
    (desk.folder / ".tmp").mkdir()
    (desk.folder / ".tmp" / "spilled.csv").write_text("word\nof another program\n", "utf-8")
    told = desk("sql", *options, statement)
    assert (told.code, told.stdout) == (2, "")
    assert told.complaint.startswith("SQL: ")
    assert said in told.complaint
    assert not list(desk.folder.rglob("stolen*"))


@pytest.mark.parametrize("options", [[], ["--script", "SELECT 1"], ["--script"]])
def test_read_only_goes_with_a_statement(desk, options):
    told = desk("sql", "--read-only", *options)
    assert (told.code, told.stdout, told.complaint) == (2, "", "--read-only goes with a statement")


@pytest.mark.slow
def test_damaged_index_is_built_again_and_stays_closed(desk):
    """The statement runs again on another connection, which must be locked as well."""
    assert desk("search", "oak").code == 0
    (newest,) = sorted((desk.folder / "corpus" / "index").glob("index-*.duckdb"))[-1:]
    content = bytearray(newest.read_bytes())
    content[len(content) // 3 : -4096] = bytes(len(content) - 4096 - len(content) // 3)
    newest.write_bytes(content)
    told = desk("sql", "--read-only", "--json", "SELECT count(*) FROM chunks")
    assert told.json["rows"][0][0] > 0
    newest.write_bytes(content)
    refused = desk("sql", "--read-only", "SELECT text FROM chunks; COPY documents TO 'stolen.csv'")
    assert refused.code == 2
    assert not list(desk.folder.rglob("stolen*"))
