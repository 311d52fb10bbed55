"""Reading commands: their output, as text and as exactly one JSON object."""

import shlex
import sys

import pytest

from parquetry.serving.cli.commands import PLACES, application
from parquetry.storage.database import open_duckdb
from parquetry.storage.files.layout import TABLES

NAMES = sorted(name for name, place in PLACES.items() if not place.endswith((".app", ".evaluate")))


# --- help


@pytest.mark.parametrize("command", NAMES)
def test_every_command_has_help_that_describes_all_of_it(desk, command):
    told = desk(command, "--help")
    assert (told.code, told.stderr) == (0, "")
    assert f"Usage: parquetry {command}" in told.stdout
    described = next(
        each for each in application().registered_commands if each.callback.__name__.rstrip("_") == command
    )
    first = described.callback.__doc__.split(".")[0].split(";")[0].split()[:4]
    assert all(word in told.stdout for word in first)


def test_no_command_shows_help(desk):
    assert desk().stdout == desk("--help").stdout
    assert all(name in desk().stdout for name in NAMES)


def test_version_is_told(desk):
    assert desk("--version").stdout.startswith("parquetry 0.")


# --- search

RESULT = {
    "chunk_id",
    "document_id",
    "uri",
    "path",
    "filename",
    "title",
    "namespace",
    "source",
    "modified_at",
    "page",
    "headings",
    "span",
    "text",
    "score",
    "relevance",
    "scores",
    "tags",
    "metadata",
    "what",
    "also_in",
    "also_in_count",
}


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_search_is_one_object_of_the_promised_shape(desk, mode):
    told = desk("search", "oak table", "--mode", mode, "-k", 3, "--json")
    assert (told.code, told.stderr) == (0, "")
    answer = told.json
    assert list(answer) == ["query", "mode", "version", "seconds", "results"]
    assert (answer["query"], answer["mode"], answer["version"]) == ("oak table", mode, 2)
    best = answer["results"][0]
    assert set(best) == RESULT
    assert best["filename"] == "oak.txt"
    assert best["span"] == [0, len(best["text"])]
    assert set(best["scores"]) == {"vector", "text", "rerank"}
    assert (best["scores"]["text"] is None) == (mode == "vector")
    assert (best["scores"]["vector"] is None) == (mode == "text")
    scores = [each["score"] for each in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert best["uri"].startswith("file:///")


def test_search_cites_headings_and_spans_of_the_stored_text(desk):
    best = desk("search", "moving house", "--mode", "text", "--json").json["results"][0]
    text = desk("show", best["document_id"], "--json").json["text"]
    assert text[slice(*best["span"])] == best["text"]
    assert best["headings"][0] == "Leave"


def test_search_of_a_version_gives_what_was_true_then(desk):
    def cost(*options):
        return desk("search", "oak table costs", "--mode", "text", "--json", *options).json["results"][0]["text"]

    assert "700" in cost()
    assert "640" in cost("--version", 1)
    assert desk("search", "oak", "--json", "--version", 0).json["results"] == []


@pytest.mark.parametrize(
    ("options", "files"),
    [
        (("--filename", "*.txt"), {"oak.txt", "it's [odd].txt"}),
        (("--filename", "sub/*"), {"leave.md", "it's [odd].txt"}),
        (("--media-type", "text/markdown"), {"leave.md"}),
        (("--min-score", "1"), set()),
    ],
)
def test_search_filters(desk, options, files):
    found = desk("search", "oak", "--mode", "vector", "-k", 50, "--json", *options).json["results"]
    assert {each["filename"] for each in found} == files


@pytest.mark.parametrize("query", ["", "'; --", "größe 🙂", "a" * 3000, '{"x": "\\u0000"}'])
def test_search_takes_any_query(desk, query):
    told = desk("search", query, "--json")
    assert told.code == 0
    assert told.json["query"] == query


def test_search_for_people_fits_the_terminal_and_cites(desk, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    told = desk("search", "how much holiday")
    assert "thirty days" in told.stdout
    assert "[1] " in told.stdout
    assert "leave.md" in told.stdout
    long = [line for line in told.stdout.splitlines() if len(line) > 60]
    assert all("file:///" in line for line in long)


@pytest.mark.parametrize("option", ["--user", "--org"])
def test_empty_name_is_nobody_and_not_the_operator(desk, option):
    """A script with an unset variable must not see everything."""
    private = 'name = "docs"\nvisibility = "individual"\nuser_id = "ada"'
    settings = desk.folder / "parquetry.toml"
    settings.write_text(settings.read_text().replace('name = "docs"', private))
    assert desk("refresh", "--direct").code == 0
    assert desk("search", "oak", option, "", "--json").json["results"] == []
    assert desk("search", "oak", "--user", "ada", "--json").json["results"] != []


def test_search_with_another_embedder_than_the_corpus_says_what_to_do(desk):
    settings = desk.folder / "parquetry.toml"
    settings.write_text(settings.read_text() + "[embedding]\ndimension = 64\n")
    told = desk("search", "oak")
    assert told.code == 2
    assert "namespace default was embedded by wordllama" in told.complaint
    assert "--mode text" in told.complaint
    assert desk("search", "oak", "--mode", "text").code == 0


# --- sql


def test_sql_gives_columns_and_rows(desk):
    told = desk("sql", "SELECT path, chunks FROM documents WHERE status = 'indexed' ORDER BY path", "--json").json
    assert told["columns"] == ["path", "chunks"]
    assert [path for path, _ in told["rows"]] == ["leave.md", "oak.txt", "sub/it's [odd].txt", "sub/leave.md"]


def test_sql_values_that_json_has_no_word_for_are_told_as_text_or_null(desk):
    statement = "SELECT 'nan'::DOUBLE AS a, DATE '2031-01-02' AS b, [1.5, 'inf'::DOUBLE] AS c, {'x': 1} AS d, 'ö' AS e"
    assert desk("sql", statement, "--json").json["rows"] == [[None, "2031-01-02", [1.5, None], {"x": 1}, "ö"]]


def test_sql_for_people_is_a_table(desk):
    told = desk("sql", "SELECT 1 AS one, NULL AS nothing, 'a\nb' AS lines")
    assert told.stdout == "one  nothing  lines\n---  -------  -----\n1             a b\n"


def test_sql_without_a_statement_tells_how_to_open_the_corpus(desk):
    told = desk("sql").stdout
    for word in ("documents: ", "chunks: ", "In Python", "duckdb -init corpus.sql -c"):
        assert word in told
    (line,) = [line for line in told.splitlines() if "--script" in line]
    command = shlex.split(line.partition(" > ")[0])
    assert command[0] == "parquetry"
    with open_duckdb() as elsewhere:
        elsewhere.execute(desk(*command[1:]).stdout)
        assert elsewhere.execute("SELECT count(*) FROM chunks").fetchall() == [(4,)]


def test_sql_without_a_statement_lists_the_files_as_json(desk):
    files = desk("sql", "--json").json["files"]
    assert set(files) == set(TABLES)
    assert all(file.startswith(str(desk.folder)) for paths in files.values() for file in paths)


# --- documents, chunks, show, history


@pytest.mark.parametrize(
    ("status", "paths"),
    [
        (None, 6),
        ("indexed", 4),
        ("skipped", 1),
        ("failed", 1),
    ],
)
def test_documents_are_listed_by_status(desk, status, paths):
    options = ("--status", status) if status else ()
    told = desk("documents", "--json", *options).json
    assert told["version"] == 2
    assert len(told["documents"]) == paths
    assert len(desk("documents", *options).stdout.splitlines()) == paths + 2


def test_documents_for_people_fit_the_terminal(desk, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    told = desk("documents").stdout
    assert max(map(len, told.splitlines())) <= 80
    assert "extract/" in told


def test_table_elsewhere_is_in_whole_lines(desk):
    """Scripts split its output into columns."""
    told = desk("documents", "--status", "skipped").stdout
    assert told.splitlines() == [
        "status   path       title  pages  chunks  error",
        "-------  ---------  -----  -----  ------  --------------------------------------",
        "skipped  empty.txt  empty  0      0       extract/empty: the file has no content",
    ]


def test_row_of_more_columns_than_a_line_holds_has_a_line_for_each_value(desk, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    told = desk("sql", "SELECT * FROM documents WHERE filename = 'oak.txt'").stdout.splitlines()
    assert max(map(len, told)) <= 80
    assert "filename      oak.txt" in told
    assert "status        indexed" in told


@pytest.mark.parametrize("name", ["sub/leave.md", "it's [odd].txt", "oak.txt"])
def test_document_is_shown_by_path_filename_uri_and_id(desk, name):
    shown = desk("show", name, "--json").json
    assert desk("show", shown["uri"], "--json").json == shown
    assert desk("show", shown["document_id"], "--json").json == shown
    assert shown["text"] in desk("show", name).stdout
    chunks = desk("chunks", name, "--json").json["chunks"]
    assert [shown["text"][chunk["start"] : chunk["end"]] for chunk in chunks] == [chunk["text"] for chunk in chunks]


def test_document_is_shown_by_source_and_path_beginning_of_its_id_and_glob(desk):
    shown = desk("show", "oak.txt", "--json").json
    for name in ("docs/oak.txt", shown["document_id"][:10], "o*.txt"):
        assert desk("show", name, "--json").json == shown
    short = desk("show", shown["document_id"][:5])
    assert (short.code, "no document" in short.complaint) == (2, True)
    several = desk("show", "*.md")
    assert (several.code, "means 2 documents" in several.complaint) == (2, True)


def test_documents_are_listed_by_name(desk):
    paths = [each["path"] for each in desk("documents", "--json", "sub/*", "docs/oak.txt").json["documents"]]
    assert paths == ["oak.txt", "sub/it's [odd].txt", "sub/leave.md"]
    assert desk("documents", "nothing*").complaint.startswith("no document 'nothing*' in this corpus")


def test_path_decides_before_filename(desk):
    assert "thirty days" in desk("show", "leave.md").stdout


def test_document_without_text_says_so(desk):
    assert desk("show", "empty.txt").stdout.endswith("(no text)\n")
    assert desk("show", "empty.txt", "--json").json["text"] is None
    assert desk("chunks", "broken.docx", "--json").json["chunks"] == []


def test_ambiguous_name_lists_what_it_may_mean(desk):
    desk.write("more/oak.txt", "Another oak.")
    desk.write("most/oak.txt", "One more oak.")
    (desk.folder / "docs" / "oak.txt").unlink()
    assert desk("refresh", "--direct").code == 0
    told = desk("show", "oak.txt")
    assert told.code == 2
    assert "'oak.txt' means 2 documents" in told.complaint
    assert "more/oak.txt" in told.complaint
    assert "give the uri" in told.complaint
    assert ", ..." not in told.complaint


def test_history_tells_every_version(desk):
    versions = desk("history", "--json").json["versions"]
    assert [(each["version"], each["operation"], each["rows"]) for each in versions] == [
        (2, "publish", 1),
        (1, "publish", 6),
        (0, "create", 0),
    ]
    assert len(desk("history", "--limit", 1).stdout.splitlines()) == 3


# --- usage errors


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("search",), "Missing argument 'query'; give one query, or a file of them with --queries"),
        (("search", "x", "-k", "0"), "Invalid value for '-k'"),
        (("search", "x", "-k", "many"), "Invalid value for '-k'"),
        (("search", "x", "--mode", "magic"), "'magic' is not one of 'hybrid', 'vector', 'text'"),
        (("search", "x", "--nonsense"), "No such option: --nonsense"),
        (("search", "x", "--version", "7"), "has no version 7; it has 0 to 2"),
        (("search", "x", "--version", "-1"), "has no version -1; it has 0 to 2"),
        (("searhc",), "No such command 'searhc'"),
        (("documents", "--status", "lost"), "'lost' is not one of 'indexed', 'failed', 'skipped'"),
        (("show", "nothing.md"), "no document 'nothing.md' in this corpus; `parquetry documents` lists them"),
        (("sql", "SELEC 1"), 'SQL: Parser Error: syntax error at or near "SELEC"'),
        (("sql", "SELECT x FROM documents"), 'SQL: Binder Error: Referenced column "x" not found'),
        (("sql", ""), "SQL: there is no statement in it"),
        (("search", "x", "--corpus", "nowhere"), "no corpus at "),
        (("search", "x", "--corpus", "ftp://host/kb"), "ftp:// is not supported"),
        (
            ("search", "x", "--config", "other.toml"),
            "settings file other.toml does not exist; `parquetry init` writes one",
        ),
        (("search", "x", "--namespace", "a b"), "no namespace 'a b' in corpus "),
        (("history", "--limit", "0"), "Invalid value for '--limit'"),
        (("restore", "--version", "9"), "has no version 9; it has 0 to 2"),
        (("restore",), "Missing option '--version'"),
        (("remove",), "Missing argument 'DOCUMENT'"),
        (("remove", "nothing.md"), "no document 'nothing.md'"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(desk, arguments, problem):
    told = desk(*arguments)
    assert (told.code, told.stdout) == (2, "")
    assert problem in told.complaint
