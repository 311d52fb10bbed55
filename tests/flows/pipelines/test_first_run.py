"""A failed first run leaves no corpus, and the next run reuses its paid work."""

from dataclasses import replace

import pytest

from parquetry.embed.prices import Price
from parquetry.embed.registry import PROVIDERS
from parquetry.errors import ParquetryError, RefusedError, SettingsError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.storage.connect import connect
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.engine.base import DirectEngine
from tests.workshop import Workshop

OAK = "The oak is dried for two years."


@pytest.fixture
def workshop(tmp_path):
    made = Workshop(tmp_path)
    made.write("a.md", OAK)
    return made


class Stops(Observer):
    """Interrupt a run as a user does."""

    def __init__(self, moment):
        self._moment = moment

    def planned(self, plan, batches):
        if self._moment == "planned":
            raise KeyboardInterrupt

    def batch_done(self, report):
        if self._moment == "batch done":
            raise KeyboardInterrupt


def interrupted(workshop, moment):
    with pytest.raises(KeyboardInterrupt):
        run_refresh(Request(workshop.settings), DirectEngine(), Stops(moment))


def corpus(workshop):
    return workshop.root / "corpus"


def test_run_refused_for_its_cost_leaves_nothing(workshop, monkeypatch):
    dear = replace(PROVIDERS["wordllama"], price=lambda *_: Price(100.0, None, "this test"))
    monkeypatch.setitem(PROVIDERS, "wordllama", dear)
    workshop.sections["refresh"] = {"budget_usd": 0.000001}
    with pytest.raises(RefusedError):
        workshop.refresh()
    assert not corpus(workshop).exists()


def test_run_that_is_interrupted_before_it_wrote_anything_leaves_nothing(workshop):
    interrupted(workshop, "planned")
    assert not corpus(workshop).exists()
    with pytest.raises(SettingsError, match=r"no corpus at .*; `parquetry refresh` makes one"):
        workshop.reader()


@pytest.mark.slow
def test_vectors_of_an_interrupted_first_run_are_not_computed_again(workshop):
    interrupted(workshop, "batch done")
    with pytest.raises(SettingsError, match=r"nothing is published in corpus .* yet; run `parquetry refresh` first"):
        workshop.search("oak")
    with connect(str(corpus(workshop)), search=False) as connection:
        assert connection.sql("SELECT status, error FROM runs").fetchall() == [("failed", "KeyboardInterrupt: ")]
    report = workshop.refresh()
    assert (report.work.chunks_embedded, report.work.chunks_reused) == (0, 1)
    assert [hit.row["filename"] for hit in workshop.search("oak").hits] == ["a.md"]


def test_shards_without_any_table_are_found_again(workshop):
    """A killed process leaves files and cannot report them."""
    interrupted(workshop, "batch done")
    for log in corpus(workshop).glob("*/_delta_log/*.json"):
        log.unlink()
    assert not Lake.exists(str(corpus(workshop)))
    assert workshop.refresh().work.chunks_embedded == 0


def test_version_that_was_empty_answers_with_nothing(workshop):
    workshop.refresh()
    assert workshop.reader(0).snapshot.files["documents"] == ()


def test_run_that_finds_nothing_is_on_record(workshop):
    (workshop.folder / "a.md").unlink()
    assert workshop.refresh().version == 0
    with pytest.raises(SettingsError, match="nothing is published"):
        workshop.search("oak")


def test_place_that_cannot_hold_a_corpus_is_refused_before_anything_is_read(workshop):
    (workshop.root / "corpus").write_text("a file")
    with pytest.raises(SettingsError, match="is a file, and a corpus is a folder"):
        workshop.refresh()


@pytest.mark.slow
def test_two_first_runs_at_once_publish_both(workshop):
    """The second run finds the tables that the first one created in the meantime."""
    other = Workshop(workshop.root)
    other.folder = workshop.root / "more"
    other.folder.mkdir()
    other.sections["source"] = {"name": "more", "namespace": "more"}
    other.write("b.md", "The elm is dried as well.")

    class Meanwhile(Observer):
        def batch_done(self, report):
            other.refresh()

    report = run_refresh(Request(workshop.settings), DirectEngine(), Meanwhile())
    assert report.version == 2
    assert set(workshop.rows()) == {"a.md", "b.md"}


def test_chats_alone_say_which_command_reads_them(workshop):
    workshop.sections["source"] = {"content": "sessions"}
    for ask in (workshop.plan, workshop.refresh):
        with pytest.raises(ParquetryError, match="run `parquetry sessions refresh`") as raised:
            ask()
        assert raised.value.exit_code == 2
    assert not corpus(workshop).exists()


def test_emptied_corpus_has_no_results(workshop):
    workshop.refresh()
    assert [hit.row["filename"] for hit in workshop.search("oak").hits] == ["a.md"]
    (workshop.folder / "a.md").unlink()
    workshop.refresh(allow_removals=True)
    assert workshop.search("oak").hits == ()
