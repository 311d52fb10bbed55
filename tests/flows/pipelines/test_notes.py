"""Notes on the extraction of a document stay visible after the run for as long as they are true."""

import shutil

import duckdb
import pytest

from parquetry.flows.orchestration.report import as_markdown, report_markdown
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.storage.connect import connect
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.search.export import export_corpus, scoped
from parquetry.storage.search.filters import Caller, Filters, restrict
from parquetry.tasks.engine.base import DirectEngine
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

OPEN = 'name,note\n"oak,dried\n' + "elm,wet\n" * 250
NOTE = "a quotation mark is never closed: quotation marks were read as text"


@pytest.fixture
def workshop(tmp_path):
    made = Workshop(tmp_path)
    made.write("open.csv", OPEN)
    made.write("whole.csv", "name,note\nash,dried\n")
    return made


def notes(workshop, version=None):
    with connect(str(workshop.root / "corpus"), version=version) as connection:
        return connection.sql("SELECT filename, stage, note FROM notes").fetchall()


def test_note_is_kept_while_the_document_is_as_it_was(workshop):
    report = workshop.refresh()
    assert report.warnings == (f"{(workshop.folder / 'open.csv').as_uri()}: {NOTE}",)
    assert as_markdown(NOTE) in report_markdown(report)
    assert notes(workshop) == [("open.csv", "extract", NOTE)]
    assert workshop.refresh().documents.unchanged == 2
    assert notes(workshop) == [("open.csv", "extract", NOTE)]
    (workshop.folder / "open.csv").rename(workshop.folder / "moved.csv")
    assert workshop.refresh().documents.moved == 1
    assert notes(workshop) == [("moved.csv", "extract", NOTE)]
    workshop.write("moved.csv", OPEN.replace('"', ""))
    workshop.refresh()
    assert notes(workshop) == []
    assert notes(workshop, 1) == [("open.csv", "extract", NOTE)]


def test_note_stays_when_the_stored_text_is_chunked_again(workshop):
    workshop.refresh()
    workshop.sections["chunking"] = {"size": 200, "overlap": 20}
    report = workshop.refresh()
    assert (report.documents.changed, report.work.bytes_read) == (2, 0)
    assert notes(workshop) == [("open.csv", "extract", NOTE)]


def test_note_is_shown_to_those_who_see_the_document(workshop):
    (workshop.folder / ".parquetry.toml").write_text('visibility = "individual"\nuser_id = "ada"')
    workshop.refresh()
    seen = {}
    for user in ("ada", "eve"):
        snapshot = workshop.lake.snapshot()
        with connect_snapshot(snapshot) as connection, scoped(snapshot, Filters(caller=Caller(user)), "none") as sql:
            restrict(connection, Caller(user))
            seen[user] = [each.execute("SELECT note FROM notes").fetchall() for each in (connection, sql)]
    assert seen == {"ada": [[(NOTE,)]] * 2, "eve": [[]] * 2}


def test_export_holds_no_note_on_what_its_reader_may_not_see(workshop, tmp_path):
    (workshop.folder / ".parquetry.toml").write_text('visibility = "individual"\nuser_id = "ada"')
    workshop.refresh()
    held = {}
    for user in ("ada", "eve"):
        done = export_corpus(workshop.lake.snapshot(), Filters(caller=Caller(user)), tmp_path / user, "none")
        with duckdb.connect(str(done.path), read_only=True) as connection:
            held[user] = [
                connection.execute(f"SELECT note FROM {name}").fetchall() for name in ("notes", "parts.notes")
            ]
    assert held == {"ada": [[(NOTE,)]] * 2, "eve": [[]] * 2}


def test_corpus_of_before_there_were_notes_opens_and_refreshes(workshop):
    workshop.refresh()
    shutil.rmtree(workshop.root / "corpus" / "notes")
    assert notes(workshop) == []
    assert examine(workshop.lake).healthy
    assert workshop.refresh().documents.unchanged == 2
    workshop.write("open.csv", OPEN + "pine,dry\n")
    workshop.refresh()
    assert notes(workshop) == [("open.csv", "extract", NOTE)]


class Interrupting(Observer):
    """End a run after its shards are written and before anything is published."""

    def batch_done(self, report):
        raise KeyboardInterrupt


def test_note_of_a_run_that_published_nothing_is_not_shown(workshop):
    workshop.refresh()
    workshop.write("whole.csv", OPEN)
    with pytest.raises(KeyboardInterrupt):
        run_refresh(Request(workshop.settings), DirectEngine(), Interrupting())
    assert notes(workshop) == [("open.csv", "extract", NOTE)]
