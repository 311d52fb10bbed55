"""Every document of a run advances its progress once, and a slow one is shown by name."""

import re
import threading
from concurrent.futures import Future
from io import StringIO

import pytest
from rich.console import Console

from parquetry.errors import TransientError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.model import Access, Item
from parquetry.planning.diff import Change
from parquetry.serving.cli.progress import Lines, Observer, ProgressBar
from parquetry.settings.sections import parse_settings
from parquetry.sources import providers
from parquetry.tasks.documents import reading_progress
from parquetry.tasks.documents.reading_progress import ReadingProgress, SlowDocument
from parquetry.tasks.engine import retries
from parquetry.tasks.engine.base import DirectEngine
from tests import shelf_source
from tests.shelf_source import SHELVES, ShelfSource


def change_of(path):
    item = Item(path, f"shelf://a/{path}", 1, "h", shelf_source._THEN, Access())
    return Change("added", "extract", "new", path, "default", "a", item, None)


@pytest.fixture
def seconds():
    return [0.0]


@pytest.fixture
def reading(seconds):
    return ReadingProgress(lambda: seconds[0])


def extracting(reading, path, *, running=True, is_all=True):
    future = Future()
    reading.extracting(change_of(path), future, is_all=is_all)
    if running:
        future.set_running_or_notify_cancel()
        assert reading.slowest is not None
    return future


class Watcher(Observer):
    """Record everything that is reported, in order."""

    def __init__(self):
        self.events = []
        self.total = 0

    def planned(self, plan, batches):
        self.total = sum(change.effort != "nothing" for change in plan.changes)

    def document_read(self):
        self.events.append("read")

    def document_slow(self, slow):
        self.events.append(slow.path)

    def batch_done(self, report):
        self.events.append("batch")


def test_a_document_is_told_when_it_takes_long_and_again_after_twice_the_time(reading, seconds):
    future = extracting(reading, "handbook.pdf")
    told = []
    for now in range(0, 200, 4):
        seconds[0] = float(now)
        told += map(str, reading.overdue())
    assert told == [f"reading handbook.pdf ({then} s)" for then in (32, 64, 128)]
    future.set_result(None)
    seconds[0] = 1000.0
    assert (reading.overdue(), reading.slowest) == ([], None)


def test_a_document_that_waits_for_its_turn_is_not_being_read(reading, seconds):
    future = extracting(reading, "second.pdf", running=False)
    assert reading.slowest is None
    seconds[0] = 50.0
    future.set_running_or_notify_cancel()
    assert str(reading.slowest) == "reading second.pdf (0 s)"
    seconds[0] = 53.0
    assert str(reading.slowest) == "reading second.pdf (3 s)"


def test_the_document_that_has_taken_longest_is_named(reading, seconds):
    first = extracting(reading, "first.pdf")
    seconds[0] = 5.0
    with reading.waits.on("fetched.pdf"):
        seconds[0] = 7.0
        assert str(reading.slowest) == "reading first.pdf (7 s)"
        first.set_result(None)
        assert str(reading.slowest) == "reading fetched.pdf (2 s)"


def test_a_document_counts_once_however_often_it_is_tried_and_not_if_it_is_given_up(reading):
    told = []
    reading.on_read(lambda: told.append("read"))
    extracting(reading, "a.pdf").set_exception(ValueError())
    extracting(reading, "a.pdf").set_result(None)
    reading.read(change_of("a.pdf"))
    assert told == ["read"]
    assert extracting(reading, "b.pdf", running=False).cancel()
    assert told == ["read"]


def test_documents_that_were_read_take_no_memory_after_the_last_batch(reading):
    told = []
    reading.on_read(lambda: told.append("read"))
    for _ in range(2):
        reading.read(change_of("a.pdf"))
    reading.give_memory_back()
    assert told == ["read"]
    reading.read(change_of("a.pdf"))
    assert told == ["read", "read"]


def test_an_image_that_is_still_to_be_described_is_not_read_when_it_is_extracted(reading):
    told = []
    reading.on_read(lambda: told.append("read"))
    extracting(reading, "a.png", is_all=False).set_result(None)
    assert told == []
    reading.read(change_of("a.png"))
    assert told == ["read"]


def test_control_characters_of_a_name_do_not_reach_the_terminal_and_its_end_stays_when_it_is_cut(reading):
    extracting(reading, "\x1b[31mred\nname.pdf")
    assert reading.slowest.line(80) == r"reading \u{1b}[31mred\u{a}name.pdf (0 s)"
    assert reading.slowest.line(23) == "reading …name.pdf (0 s)"
    assert reading.slowest.line(1) == "reading …f (0 s)"


# --- of a run


@pytest.fixture
def shelf(monkeypatch):
    monkeypatch.setitem(providers.BUILT_IN, "shelf", f"{shelf_source.__name__}:open_shelf")
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    monkeypatch.setitem(
        SHELVES, "a", ShelfSource(**{f"{number}__md": f"Rule {number}: count twice." for number in range(4)})
    )
    return SHELVES["a"]


def settings_of(root, **refresh):
    return parse_settings(
        {
            "corpus": {"root": str(root)},
            "extraction": {"workers": 1},
            "refresh": {"attempts": 1, **refresh},
            "source": [{"name": "a", "uri": "shelf://a"}],
        },
        "test",
    )


def test_documents_of_a_batch_are_told_one_by_one_and_the_one_that_is_waited_for_by_name(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr(reading_progress, "LONG_SECONDS", 0.0)
    gate = threading.Event()

    class Opens(Watcher):
        """Let the last document finish once all others are reported and this one is shown as missing."""

        def document_slow(self, slow):
            if self.events.count("read") == 3:
                super().document_slow(slow)
                gate.set()

    shelf.before_fetch = lambda path: path != "2.md" or gate.wait(60) or pytest.fail("nobody was told")
    watcher = Opens()
    report = run_refresh(Request(settings_of(tmp_path)), DirectEngine(), watcher)
    assert report.documents.added == 4
    assert watcher.events[:4] == ["read", "read", "read", "2.md"]
    assert [event for event in watcher.events if event != "2.md"] == ["read"] * 4 + ["batch"]


def test_documents_that_fail_or_need_only_a_row_count_too(shelf, tmp_path):
    shelf.fetch_failures["1.md"] = [TransientError("unreachable", "no answer")]
    shelf.contents["empty.md"] = ""
    first = Watcher()
    run_refresh(Request(settings_of(tmp_path)), DirectEngine(), first)
    assert (first.total, first.events) == (5, ["read"] * 5 + ["batch"])
    shelf.contents["moved.md"] = shelf.contents.pop("0.md")
    del shelf.contents["3.md"]
    second = Watcher()
    report = run_refresh(Request(settings_of(tmp_path), allow_removals=True), DirectEngine(), second)
    assert report.documents.removed
    assert second.events.count("read") == second.total > 2


def test_documents_that_are_chunked_again_from_stored_text_count(workshop):
    for number in range(3):
        workshop.write(f"{number}.md", f"# Rule {number}\n\nCount twice.")
    workshop.refresh()
    workshop.sections["chunking"] = {"size": 500}
    watcher = Watcher()
    run_refresh(Request(workshop.settings), DirectEngine(), watcher)
    assert {change.effort for change in workshop.plan().changes} <= {"nothing"}
    assert watcher.events == ["read"] * 3 + ["batch"]


# --- the progress bar


def drawn(reading, width):
    """Return the text that a progress bar draws, without terminal escape sequences."""
    console = Console(file=StringIO(), force_terminal=True, width=width, color_system=None)
    with ProgressBar(console) as bar:
        bar.documents_read(reading)
        bar._progress.update(bar._task, description="Documents", total=3)
        bar.document_read()
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "\n", console.file.getvalue())


def test_bar_names_the_document_that_takes_long_in_the_room_that_there_is(reading, seconds):
    extracting(reading, "policies/2031/handbook-of-the-whole-company.pdf")
    assert "1/3" in drawn(reading, 80)
    assert "reading" not in drawn(reading, 80)
    seconds[0] = 12.0
    assert "reading policies/2031/handbook-of-the-whole-company.pdf (12 s)" in drawn(reading, 140)
    narrow = drawn(reading, 80)
    assert "company.pdf (12 s)" in narrow
    assert "reading …" in narrow
    assert all(len(line) <= 80 for line in narrow.splitlines())


def test_bar_at_its_end_says_that_the_run_goes_on():
    console = Console(file=StringIO(), force_terminal=True, width=80, color_system=None)
    with ProgressBar(console) as bar:
        bar._progress.update(bar._task, description="Documents", total=1)
        bar.document_read()
    assert re.search(r"Finishing .* 1/1", console.file.getvalue())


def test_without_a_terminal_a_document_that_takes_long_is_a_line_on_stderr(capsys):
    with Lines() as lines:
        lines.document_read()
        lines.document_slow(SlowDocument("handbook.pdf", 12.3))
    assert capsys.readouterr() == ("", "  reading handbook.pdf (12 s)\n")
