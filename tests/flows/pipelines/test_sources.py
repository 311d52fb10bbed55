"""Refreshes of sources that fail, stall or are listed only partially: nothing is lost, and the operator is informed."""

import threading

import pytest

from parquetry.errors import SettingsError, TransientError
from parquetry.flows.pipelines.documents import Request, plan_only, run_refresh
from parquetry.model import Unlisted
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import parse_settings
from parquetry.sources import providers
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.engine import retries
from parquetry.tasks.engine.base import DirectEngine
from tests import shelf_source
from tests.shelf_source import SHELVES, ShelfSource

pytestmark = pytest.mark.slow

DOWN = TransientError("unreachable", "no answer")


class Shelves:
    """A corpus of the shelves `a` and `b`, with four documents each."""

    def __init__(self, root):
        self.root = root
        self.a, self.b = (
            ShelfSource(**{f"{number}__md": f"Rule {name}{number}: count twice." for number in range(4)})
            for name in "ab"
        )
        SHELVES.update(a=self.a, b=self.b)
        self.sections = {"extraction": {"workers": 1}, "refresh": {"batch_documents": 2, "attempts": 2}}
        self.more = {}

    @property
    def settings(self):
        tables = [{"name": name, "uri": f"shelf://{name}", **self.more} for name in "ab"]
        return parse_settings({"corpus": {"root": str(self.root)}, "source": tables, **self.sections}, "test")

    def refresh(self, observer=None, **options):
        return run_refresh(Request(self.settings, **options), DirectEngine(), observer or Observer())

    def plan(self):
        return plan_only(Request(self.settings))

    def paths(self):
        return sorted(f"{row.source}/{row.path}" for row in current_rows(Lake(str(self.root)).snapshot()))

    def query(self, statement):
        with Reader(self.settings).connection as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture
def shelves(tmp_path, monkeypatch):
    monkeypatch.setitem(providers.BUILT_IN, "shelf", f"{shelf_source.__name__}:open_shelf")
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    yield Shelves(tmp_path / "corpus")
    SHELVES.clear()


ALL = [f"{source}/{number}.md" for source in "ab" for number in range(4)]


@pytest.mark.parametrize("seen", [0, 3])
def test_listing_that_breaks_off_removes_nothing_and_the_other_source_goes_on(shelves, seen):
    shelves.refresh()
    shelves.a.scan_failures = [(seen, DOWN)] * 2
    shelves.a.contents["0.md"] = "Rule a0: count three times."
    del shelves.a.contents["2.md"], shelves.b.contents["3.md"]
    report = shelves.refresh()
    assert shelves.paths() == ALL[:-1]
    assert (report.documents.removed, report.documents.changed) == (1, 1 if seen else 0)
    (failure,) = report.failures
    assert (failure.uri, failure.stage, failure.reason) == ("shelf://a", "scan", "unreachable")
    assert failure.status == "failed"
    assert any("a: the listing broke off, so nothing was removed: no answer" in line for line in report.warnings)
    assert (report.documents.failed, report.refused) == (0, ())


def test_listing_that_broke_off_is_kept_with_the_run(shelves):
    shelves.refresh()
    shelves.a.scan_failures = [(0, DOWN)] * 2
    run_id = shelves.refresh().run_id
    assert shelves.query(f"SELECT uri, stage, reason FROM failures WHERE run_id = '{run_id}'") == [
        ("shelf://a", "scan", "unreachable")
    ]
    assert shelves.query(f"SELECT failures_by_reason FROM runs WHERE run_id = '{run_id}'") == [
        ('{"scan/unreachable": 1}',)
    ]
    assert shelves.refresh().failures == ()


def test_plan_tells_of_a_listing_that_broke_off(shelves):
    shelves.a.scan_failures = [(1, DOWN)] * 2
    plan = shelves.plan()
    assert plan.warnings == ("a: the listing broke off, so nothing was removed: no answer",)
    assert len(list(plan.changes)) == 5


def test_source_that_lists_nothing_keeps_its_few_documents_until_somebody_agrees(shelves):
    """An empty mount looks like this; the share guard does not apply to ten documents or fewer."""
    shelves.refresh()
    shelves.a.contents.clear()
    report = shelves.refresh()
    assert shelves.paths() == ALL
    assert "source a would lose 4 of 4 documents, because it lists nothing" in report.refused[0]
    assert shelves.refresh(allow_removals=True).documents.removed == 4
    assert shelves.paths() == ALL[4:]


def test_tombstones_tell_why(shelves):
    shelves.refresh()
    del shelves.a.contents["1.md"]
    run_id = shelves.refresh().run_id
    assert shelves.query(f"SELECT path, error FROM document_history WHERE removed AND run_id = '{run_id}'") == [
        ("1.md", "scan/gone: gone from its source")
    ]


def test_fetches_that_fail_in_passing_are_repeated_and_counted(shelves):
    shelves.a.fetch_failures["1.md"] = [DOWN]
    shelves.b.fetch_failures["2.md"] = [ConnectionResetError(104, "reset")]
    shelves.a.scan_failures = [(2, DOWN)]
    report = shelves.refresh()
    assert (report.documents.added, report.failures) == (8, ())
    assert (report.retries, report.as_json()["retries"]) == (3, 3)
    assert "a: 2 tries were repeated (unreachable)" in report.warnings
    assert "b: 1 try was repeated (io-error)" in report.warnings


def test_document_that_goes_on_failing_keeps_its_last_good_revision(shelves):
    shelves.refresh()
    shelves.a.contents["1.md"] = "Rule a1: count three times."
    shelves.a.fetch_failures["1.md"] = [DOWN] * 2
    report = shelves.refresh()
    assert [(failure.stage, failure.reason) for failure in report.failures] == [("fetch", "unreachable")]
    assert ("Rule a1: count twice.",) in shelves.query("SELECT text FROM chunks")
    assert shelves.refresh().documents.changed == 1
    assert ("Rule a1: count three times.",) in shelves.query("SELECT text FROM chunks")


def test_slow_source_does_not_hold_up_the_others(shelves):
    """All documents of one source are processed before the first of the other, for any division into batches."""
    gate = threading.Event()
    shelves.sections["refresh"] |= {"batch_documents": 1, "workers": 1}
    shelves.a.before_fetch = lambda _: gate.wait(60)
    done = []

    class Watcher(Observer):
        def batch_done(self, report):
            done.extend(row.source for row in report.rows)
            if done.count("b") == 4:
                gate.set()

    report = shelves.refresh(Watcher())
    assert gate.is_set()
    assert (report.documents.added, done) == (8, ["b"] * 4 + ["a"] * 4)


def test_documents_of_one_batch_are_fetched_together(shelves):
    shelves.sections["refresh"] |= {"batch_documents": 4}
    together = threading.Barrier(4, timeout=120)
    shelves.a.before_fetch = lambda _: together.wait()
    assert shelves.refresh().documents.added == 8
    assert shelves.a.most_at_work == 4


def test_renamed_object_keeps_its_vectors(shelves):
    shelves.refresh()
    shelves.a.contents["moved.md"] = shelves.a.contents.pop("1.md")
    report = shelves.refresh()
    assert (report.documents.added, report.documents.removed) == (1, 1)
    assert (report.work.chunks_written, report.work.chunks_embedded) == (1, 0)


def test_cancelled_run_stops_while_a_source_is_slow(shelves):
    """A run cancelled during stalled fetches does not wait for the remaining ones."""
    stop = threading.Event()

    class Impatient(Observer):
        def batch_done(self, report):
            raise KeyboardInterrupt

    shelves.sections["refresh"] |= {"batch_documents": 1, "workers": 1}
    shelves.a.contents = {f"{number}.md": f"Rule {number}." for number in range(100)}
    shelves.a.before_fetch = lambda _: stop.wait(0.2)
    with pytest.raises(KeyboardInterrupt):
        shelves.refresh(Impatient())
    assert len(shelves.a.fetched) < 20
    assert shelves.paths() == []


def test_place_that_cannot_be_seen_is_told_like_a_listing_that_broke_off(shelves):
    shelves.refresh()
    shelves.a.unlisted = [Unlisted("sub", "cannot list sub: no permission")]
    del shelves.a.contents["2.md"]
    report = shelves.refresh()
    assert shelves.paths() == ALL
    (failure,) = report.failures
    assert (failure.uri, failure.stage, failure.reason) == ("shelf://a/sub", "scan", "unlisted")
    assert failure.detail == "cannot list sub: no permission"


SECRET = "swordfish"
LEAKS = f"no answer from https://reader:{SECRET}@example.org/a?sig={SECRET}"


def test_credentials_in_what_a_library_says_are_told_and_stored_nowhere(shelves):
    shelves.a.unlisted = [Unlisted("x", LEAKS)]
    shelves.b.fetch_failures["0.md"] = [OSError(LEAKS)] * 9
    report = shelves.refresh()
    told = str(report)
    for table in ("document_history", "failures", "runs"):
        told += str(shelves.query(f"FROM {table}"))
    assert told.count("https://reader:***@example.org/a?sig=***") > 3
    assert SECRET not in told


def test_credentials_in_what_ended_a_run_are_not_stored(shelves):
    shelves.refresh()
    shelves.a.scan_failures = [(0, SettingsError(LEAKS))]
    with pytest.raises(SettingsError):
        shelves.refresh()
    ((told,),) = shelves.query("SELECT error FROM runs WHERE status = 'failed'")
    assert told == "SettingsError: no answer from https://reader:***@example.org/a?sig=***"
