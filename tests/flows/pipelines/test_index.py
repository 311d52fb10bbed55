"""A refresh updates the search index after the publish, and the index never blocks the publish."""

from __future__ import annotations

from pathlib import Path

import pytest

from parquetry.errors import StorageError
from parquetry.flows.pipelines import documents, pipeline
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.storage.index import folder
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.lake import Lake
from parquetry.tasks import context
from parquetry.tasks.engine.base import DirectEngine


class NotingEngine(DirectEngine):
    """Record the steps before which the run could be cancelled."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, name, function):
        self.steps.append(name)
        return super().step(name, function)


def test_refresh_leaves_the_index_at_what_it_published(workshop):
    workshop.write("a.md", "The oak table has four legs.")
    report = workshop.refresh()
    newest = IndexFolder(workshop.lake.layout, workshop.settings.search).newest()
    assert newest is not None
    assert newest.version == report.version == 1
    assert report.seconds_by_stage["index"] > 0


def test_the_index_is_opened_once_to_find_a_source_and_to_plan_it(workshop, monkeypatch):
    """Each opening takes 15 ms, of the quarter of a second that a refresh without changes takes to work."""
    workshop.write("a.md", "The oak table has four legs.")
    request = Request(workshop.settings, (str(workshop.write("../other/a.md", "The oak table has four legs.").parent),))
    assert run_refresh(request, DirectEngine(), Observer()).version == 1
    opened, opening = [], folder.open_file

    def noted(file):
        opened.append(file.version)
        return opening(file)

    monkeypatch.setattr(folder, "open_file", noted)
    assert run_refresh(request, DirectEngine(), Observer()).documents.unchanged == 1
    assert opened == [1]


@pytest.mark.parametrize("many", [2, 5000], ids=["much was read", "little was read"])
def test_run_that_read_much_gives_memory_back_before_it_publishes_and_before_it_indexes(workshop, monkeypatch, many):
    monkeypatch.setattr(documents, "_MANY_ROWS", many)
    happened = []
    for module, name in ((context, "give_freed_memory_back"), (pipeline, "give_freed_memory_back")):
        monkeypatch.setattr(module, name, lambda: happened.append("memory"))
    publishing, indexing = documents.publish, pipeline.refresh_index
    monkeypatch.setattr(documents, "publish", lambda *told: happened.append("publish") or publishing(*told))
    monkeypatch.setattr(pipeline, "refresh_index", lambda *told: happened.append("index") or indexing(*told))
    workshop.write("a.md", "The oak table has four legs.")
    workshop.write("b.md", "The elm table has three.")
    workshop.refresh()
    steps = ["memory", "publish", "memory", "index"]
    assert happened == (steps if many == 2 else ["publish", "index"])


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(b"no database")], ids=["gone", "damaged"])
def test_refresh_without_changes_makes_the_index_again_that_it_cannot_open(workshop, harm):
    workshop.write("a.md", "The oak table has four legs.")
    workshop.refresh()
    files = IndexFolder(workshop.lake.layout, workshop.settings.search)
    harm(files.newest().path)
    report = workshop.refresh()
    assert (report.documents.unchanged, report.index_error) == (1, None)
    assert files.newest().version == 1
    assert [hit.row["filename"] for hit in workshop.search("oak").hits] == ["a.md"]


def test_what_another_run_published_meanwhile_is_indexed(workshop):
    """A run without changes looks at the newest version, whatever it planned with."""
    workshop.write("a.md", "The oak table has four legs.")
    workshop.refresh()

    class Overtaken(DirectEngine):
        def step(self, name, function):
            result = super().step(name, function)
            if name == "plan":
                workshop.write("b.md", "An ash bench.")
                workshop.refresh()
                IndexFolder(workshop.lake.layout, workshop.settings.search).clear()
            return result

    assert run_refresh(Request(workshop.settings), Overtaken(), Observer()).documents.unchanged == 1
    assert IndexFolder(workshop.lake.layout, workshop.settings.search).newest().version == 2


def test_index_that_cannot_be_written_is_told_and_the_publish_stands(workshop):
    workshop.write("a.md", "The oak table has four legs.")
    blocked = workshop.root / "blocked"
    blocked.write_text("a file where a folder is needed")
    workshop.sections["search"] = {"index_folder": str(blocked)}
    report = workshop.refresh()
    assert report.version == 1
    assert report.index_error is not None
    assert str(blocked) in report.index_error
    assert report.index_error.endswith("the next search or refresh builds it")
    del workshop.sections["search"]
    assert [hit.row["filename"] for hit in workshop.search("oak").hits] == ["a.md"]


def test_run_that_cannot_be_recorded_has_published_and_says_so(workshop, monkeypatch):
    """An error would imply that nothing was published."""

    def refuse(*_):
        raise StorageError("the run could not be recorded: disk full")

    workshop.write("a.md", "The oak table has four legs.")
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "record", refuse)
        report = workshop.refresh()
    assert report.version == 1
    assert report.warnings == ("the run could not be recorded: disk full",)
    assert workshop.refresh().documents.unchanged == 1


def test_run_that_has_published_can_not_be_cancelled_any_more(workshop):
    """A cancelled run reports that nothing was published."""
    workshop.write("a.md", "The oak table has four legs.")
    engine = NotingEngine()
    run_refresh(Request(workshop.settings), engine, Observer())
    assert engine.steps[-1] == "publish"
