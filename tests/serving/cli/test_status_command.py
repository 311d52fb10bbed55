"""`parquetry status` and `history`: one screen, from the corpus and the settings."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from parquetry.plural import counted
from parquetry.serving.cli.main import run
from parquetry.serving.search.run_rows import counts_of
from parquetry.storage.lake import schema
from tests.serving.program import command
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

SETTINGS = """
[corpus]
root = "corpus"
[extraction]
workers = 1
[[source]]
name = "docs"
uri = "docs"
schedule = "30 3 * * *"
[[source]]
name = "more"
uri = "more"
"""


@pytest.fixture
def two(desk):
    """Create a corpus of two sources; after a refresh of both, the second was refreshed alone."""
    (desk.folder / "parquetry.toml").write_text(SETTINGS)
    (desk.folder / "more").mkdir()
    (desk.folder / "more" / "elm.txt").write_text("The elm table is sold out.")
    assert desk("refresh", "--direct").code == 0
    (desk.folder / "more" / "ash.txt").write_text("The ash table comes in May.")
    assert desk("refresh", "--direct", "more").code == 0
    return desk


def test_status_tells_sources_runs_schedules_failures_sizes_index_and_cost(two):
    told = two("status", "--json").json
    docs, more = told["sources"]
    assert [each["name"] for each in (docs, more)] == ["docs", "more"]
    assert [docs[name] for name in ("documents", "indexed", "failed", "skipped")] == [6, 4, 1, 1]
    assert [more[name] for name in ("documents", "indexed", "failed", "skipped")] == [2, 2, 0, 0]
    assert (docs["last_run"]["kind"], docs["last_run"]["status"]) == ("refresh", "completed")
    assert docs["last_run"]["sources"] == ["docs", "more"]
    assert more["last_run"]["sources"] == ["more"]
    assert more["last_run"]["counts"]["added"] == more["last_run"]["counts"]["unchanged"] == 1
    due = datetime.fromisoformat(docs["next_run"])
    assert (due.hour, due.minute, due.tzinfo) == (3, 30, UTC)
    assert timedelta() < due - datetime.now(UTC) <= timedelta(days=1)
    assert (more["schedule"], more["next_run"]) == (None, None)
    assert told["failures"] == {"extract/damaged": 1, "extract/empty": 1}
    assert told["version"] == two("history", "--json").json["versions"][0]["version"]
    assert (told["index"]["version"], told["index"]["behind"]) == (told["version"], 0)
    assert told["chunks"]["stored"] > told["chunks"]["visible"] == two("doctor", "--json").json["chunks"]
    cost = {"usd": 0, "tokens": two("sql", "--json", "SELECT sum(tokens) FROM runs").json["rows"][0][0]}
    assert told["cost"] == {**cost, "runs": 4, "unpriced_runs": 0}


def test_sizes_are_those_of_the_files(two):
    size = two("status", "--json").json["size"]
    corpus = two.folder / "corpus"
    for table in size["tables"]:
        files = list((corpus / table["table"]).glob("*.parquet"))
        assert (table["files"], table["bytes"]) == (len(files), sum(file.stat().st_size for file in files))
    index = sum(file.stat().st_size for file in (corpus / "index").glob("*.duckdb"))
    assert size["index_bytes"] == index
    logs = sum(file.stat().st_size for file in corpus.rglob("_delta_log/*"))
    assert size["bytes"] == index + logs + sum(table["bytes"] for table in size["tables"])


def on_terminal(monkeypatch):
    """Send the output of the rest of the test to a terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)


def test_screen_fits_80_columns_and_24_lines(two, monkeypatch):
    chunks = two("status", "--json").json["chunks"]
    on_terminal(monkeypatch)
    shown = two("status").stdout
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80, shown
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line.startswith(("docs ", "more "))}
    assert lines["docs"][1:3] == ["6", "1"]
    assert "  1 x extract/damaged" in shown
    assert "1 added" in shown
    kept = counted(chunks["stored"] - chunks["visible"], "chunk is", "chunks are")
    assert f"{kept} kept only for earlier versions." in shown
    assert re.search(r"Search index: \d+\.\d [kM]B, up to date\.", shown)
    assert "Cost so far: $0.0000 for " in shown


def test_corpus_without_an_index_is_said_to_have_none(two):
    for file in (two.folder / "corpus" / "index").iterdir():
        file.unlink()
    assert two("status", "--json").json["index"] is None
    assert "Search index: none yet; the next search builds it." in two("status").stdout


def test_index_of_an_earlier_version_is_said_to_be_behind(two, monkeypatch):
    (two.folder / "more" / "fir.txt").write_text("The fir table is light.")
    with monkeypatch.context() as patched:
        patched.setattr("parquetry.storage.index.folder.IndexFolder.refresh", lambda *_: None)
        assert two("refresh", "--direct", "more").code == 0
    assert two("status", "--json").json["index"]["behind"] == 1
    assert "1 version behind, the next search brings it up to date." in two("status").stdout
    assert two("search", "fir table").code == 0
    assert two("status", "--json").json["index"]["behind"] == 0


def test_source_that_left_the_settings_is_told_of_as_long_as_it_has_documents(two):
    settings = (two.folder / "parquetry.toml").read_text()
    (two.folder / "parquetry.toml").write_text(settings.partition('[[source]]\nname = "more"')[0])
    told = two("status", "--json").json["sources"][1]
    assert (told["name"], told["uri"], told["documents"]) == ("more", None, 2)
    assert "not in settings" in two("status").stdout


def test_without_a_corpus_sources_are_shown_and_a_refresh_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "parquetry.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    assert run(["status"]) == 2
    told = capsys.readouterr()
    assert "docs" in told.out
    assert told.err.splitlines() == [
        "parquetry: no corpus at corpus yet; `parquetry refresh` makes one, --corpus names another"
    ]
    assert run(["status", "--json"]) == 2
    shown = json.loads(capsys.readouterr().out)
    assert (shown["version"], [each["last_run"] for each in shown["sources"]]) == (None, [None, None])
    assert not (tmp_path / "corpus").exists()


def test_cost_of_a_paid_model_without_a_price_is_said_to_be_unknown(two):
    settings = (two.folder / "parquetry.toml").read_text()
    paid = settings.replace('root = "corpus"', 'root = "corpus"\nembedder = "openai:my-model"')
    (two.folder / "parquetry.toml").write_text(paid)
    cost = two("status", "--json").json["cost"]
    assert cost["unpriced_runs"] == cost["runs"] == 4
    assert "because no price is set for the model." in " ".join(two("status").stdout.split())


def test_nothing_of_prefect_is_imported(two):
    program = f"import sys; sys.argv = {['parquetry', 'status']!r}\n{command()[2].rpartition('; ')[0]}\n"
    program += (
        "from parquetry.serving.cli.main import run\nassert run(['status']) == 0\nassert 'prefect' not in sys.modules"
    )
    done = subprocess.run([command()[0], "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_history_names_the_kind_of_each_run_and_its_counts(two, monkeypatch):
    assert two("remove", "oak.txt").code == 0
    newest, added, *_, first = two("history", "--json").json["versions"]
    assert (newest["kind"], newest["counts"]["removed"], newest["rows"]) == ("remove", 1, 1)
    assert (added["kind"], added["status"], added["sources"]) == ("refresh", "completed", ["more"])
    assert (added["counts"]["added"], added["counts"]["unchanged"]) == (1, 1)
    assert (first["operation"], first["kind"]) == ("create", None)
    assert newest["run_id"] in two("history", "-v").stdout
    on_terminal(monkeypatch)
    shown = two("history").stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert "remove" in shown[1]
    assert "1 removed" in shown[1]
    assert "1 added, 1 unchanged" in " ".join(" ".join(shown).split())


def test_version_of_a_run_that_was_killed_before_it_was_recorded_is_unrecorded(two, monkeypatch):
    (two.folder / "more" / "fir.txt").write_text("The fir table is light.")
    with monkeypatch.context() as patched:
        patched.setattr("parquetry.storage.lake.lake.Lake.record", lambda *_: None)
        assert two("refresh", "--direct", "more").code == 0
    newest, *others = two("history", "--json").json["versions"]
    assert (newest["kind"], newest["rows"]) == (None, 1)
    assert {each["kind"] for each in others} == {"refresh", None}
    shown = two("history").stdout.splitlines()
    assert "unrecorded" in shown[2]
    assert "create" in shown[-1]


def test_counts_of_a_run_over_sessions_are_told_in_its_words():
    run = dict.fromkeys(("scanned", "changed", "moved", "permissions", "unchanged", "removed", "failed", "skipped"), 0)
    assert counts_of({**run, "kind": "sessions", "scanned": 3, "added": 2, "unchanged": 1}) == "2 new, 1 unchanged"
    assert counts_of({**run, "kind": "refresh", "scanned": 2, "added": 2}) == "2 added"


def test_runs_that_an_earlier_program_recorded_are_read_beside_new_ones(tmp_path, monkeypatch):
    """Their files lack the column `sources`, and so does the search index of that program."""
    workshop = Workshop(tmp_path)
    workshop.write("a.md", "# Ash")
    earlier = pa.schema([field for field in schema.RUNS if field.name != "sources"])
    with monkeypatch.context() as before:
        before.setattr(schema, "RUNS", earlier)
        before.setitem(schema.SCHEMAS, "runs", earlier)
        workshop.refresh()
    workshop.write("b.md", "# Beech")
    workshop.refresh()
    for connection in (workshop.reader().connection, workshop.reader().tables):
        found = connection.execute("SELECT added, sources FROM runs ORDER BY started_at").fetchall()
        assert found == [(1, None), (1, ["docs"])]
