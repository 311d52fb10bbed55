"""`parquetry history RUN`: where the time of a run went, and its slowest documents, also of one that failed."""

import pyarrow as pa
import pytest

from parquetry.errors import OutageError
from parquetry.planning.slowest import MOST_SLOWEST
from parquetry.serving.search.run_reports import recorded_run
from parquetry.storage.lake import schema
from tests.serving.program import settle
from tests.workshop import Workshop

pytestmark = pytest.mark.slow
NEW = ("seconds_by_stage", "slowest")


def test_run_names_its_stages_and_its_slowest_documents(desk):
    settle(desk)
    for number in range(MOST_SLOWEST + 2):
        desk.write(f"many/{number}.txt", f"Table {number} is of ash.")
    report = desk("refresh", "--direct", "--json").json
    steps = ["plan", "process", "publish", "fetch", "extract", "embed", "store"]
    assert list(report["seconds_by_stage"]) == [*steps, "index"]
    assert len(report["slowest"]) == MOST_SLOWEST
    seconds = [each["seconds"] for each in report["slowest"]]
    assert seconds == sorted(seconds, reverse=True)
    assert {each["stage"] for each in report["slowest"]} <= {"fetch", "extract"}

    by_version = desk("history", str(report["version"]), "--json").json
    assert by_version == desk("history", report["run_id"][:-3], "--json").json
    assert by_version == desk("history", "last", "--json").json
    assert (by_version["run_id"], by_version["slowest"]) == (report["run_id"], report["slowest"])
    # The run is recorded before its index is written.
    assert list(by_version["seconds_by_stage"]) == steps
    shown = " ".join(desk("history", "last").stdout.split())
    now = report["version"]
    assert f"Run {report['run_id']}: refresh, completed, version {now - 1} -> {now}." in shown
    assert "of process, summed over batches" in shown
    assert report["slowest"][-1]["uri"] in shown


def test_run_that_published_nothing_has_its_times_too(desk, monkeypatch):
    settle(desk)
    desk.write("new.txt", "Elm comes in May.")

    def down(*_):
        raise OutageError("the store is away")

    with monkeypatch.context() as broken:
        broken.setattr("parquetry.flows.pipelines.documents.publish", down)
        assert desk("refresh", "--direct").code == 4
    found = desk("history", "last", "--json").json
    assert (found["status"], found["error"]) == ("failed", "OutageError: the store is away")
    assert list(found["seconds_by_stage"]) == ["plan", "process", "publish"]
    # No row of the document was published: only its id is known.
    assert [(each["source"], each["uri"]) for each in found["slowest"]] == [("docs", None)]
    shown = desk("history", "last").stdout
    assert "nothing published, still version" in shown
    assert found["slowest"][0]["document_id"] in shown


def test_names_of_no_run_and_of_two(desk):
    assert "no run '77' is recorded" in desk("history", "77").complaint
    assert "no run 'oak' is recorded" in desk("history", "oak").complaint
    both = [each["run_id"] for each in desk("history", "--json").json["versions"] if each["run_id"]]
    begin = min(both)[: next(at for at, (one, other) in enumerate(zip(*both, strict=True)) if one != other)]
    assert f"more than one run is named {begin!r}: {min(both)}" in desk("history", begin).complaint


def test_earlier_programs_and_this_one_read_each_others_runs(tmp_path, monkeypatch):
    workshop = Workshop(tmp_path)
    workshop.write("a.md", "# Ash")
    earlier = pa.schema([field for field in schema.RUNS if field.name not in NEW])
    with monkeypatch.context() as before:
        before.setattr(schema, "RUNS", earlier)
        before.setitem(schema.SCHEMAS, "runs", earlier)
        first = workshop.refresh()
    workshop.write("b.md", "# Beech")
    second = workshop.refresh()
    with workshop.reader() as reader:
        old, new = (recorded_run(reader.tables, each.run_id) for each in (first, second))
    assert (old.seconds_by_stage, old.slowest) == ({}, [])
    assert [each["uri"] for each in new.slowest] == [(workshop.folder / "b.md").as_uri()]
    with monkeypatch.context() as before:
        before.setitem(schema.SCHEMAS, "runs", earlier)
        with workshop.reader() as reader:
            runs = reader.runs([first.run_id, second.run_id])
    assert [runs[each.run_id]["added"] for each in (first, second)] == [1, 1]
