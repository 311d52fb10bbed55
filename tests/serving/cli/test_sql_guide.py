"""The output of `parquetry sql` without a statement is complete, without repetition, and works as printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from parquetry.storage.database import open_duckdb
from parquetry.storage.files.layout import TABLES

VIEWS = [
    "chunks", "decisions", "document_history", "documents", "entries", "entry_history", "failures", "notes",
    "pages", "published", "quality", "runs", "searches", "sessions", "texts",
]  # fmt: skip


def part(told, title):
    """Return the lines under a title."""
    return told.partition(f"{title}")[2].partition("\n")[2].partition("\n\n")[0]


def test_every_view_is_told_once_with_every_column_once(desk):
    told = re.sub(r"\n {4}", " ", part(desk("sql").stdout, "Views:"))
    views = dict(line.strip().split(": ") for line in told.splitlines())
    assert list(views) == VIEWS
    for view, columns in views.items():
        names = columns.split(", ")
        assert sorted(names) == sorted(set(names))
        assert names == desk("sql", f"FROM {view} LIMIT 0", "--json").json["columns"], view


def test_every_macro_is_told_and_can_be_called_as_it_is_told(desk):
    told = " ".join(part(desk("sql").stdout, "Searching:").split())
    assert told == "search_hybrid(query, k), search_text(query, k), search_vector(query_vector, k), embed(text)"
    for call in ("search_hybrid('oak', 2)", "search_text('oak', 2)", "search_vector(embed('oak'), 2)"):
        assert desk("sql", f"SELECT filename FROM {call}", "--json").json["rows"][0] == ["oak.txt"], call


def test_the_command_for_duckdb_works_as_it_is_printed(desk):
    (line,) = [line for line in desk("sql").stdout.splitlines() if "duckdb -readonly" in line]
    program, *arguments = shlex.split(line)
    assert program == "duckdb"
    done = subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments, "-csv"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "indexed,4" in done.stdout.splitlines()


def test_commands_for_here_and_for_python_work_as_they_are_printed(desk):
    told = desk("sql").stdout
    for line in part(told, "Here:").strip().splitlines():
        program, *arguments = shlex.split(line)
        assert program == "parquetry"
        assert desk(*arguments).code == 0, line
    code = part(told, "In Python:").strip()
    assert len(eval(code.partition("; ")[2], {"connect": _connect}).fetchall()) == 6  # the printed line


def _connect(root):
    from parquetry.storage.connect import connect

    return connect(root)


def test_json_names_the_index_file_of_a_version_that_has_one(desk):
    told = desk("sql", "--json").json
    assert Path(told["index"]).is_file()
    assert told["index"].endswith(f"index-{told['version']}.duckdb")
    assert desk("sql", "--version", 0, "--json").json["index"] is None
    assert "duckdb -readonly" not in desk("sql", "--version", 0).stdout


def test_json_has_the_tables_the_files_and_the_queries_for_other_engines(desk):
    """As documented in `docs/raw-tables.md`."""
    told = desk("sql", "--json").json
    assert list(told) == ["version", "tables", "files", "queries", "index", "segments"]
    assert set(told["tables"]) == set(told["files"]) == set(TABLES)
    for table, files in told["files"].items():
        assert all(Path(file).parent == Path(told["tables"][table]) for file in files)
    with open_duckdb() as connection:
        for name in ("documents", "chunks"):
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet({told['files'][name]!r})")
        for name, statement in told["queries"].items():
            ((shown,),) = desk("sql", f"SELECT count(*) FROM {name}", "--json").json["rows"]
            assert connection.execute(f"SELECT count(*) FROM ({statement})").fetchall() == [(shown,)]
