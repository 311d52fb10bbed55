"""Counts add up for every outcome of a plan."""

from dataclasses import replace

import pytest

from parquetry.model import Failure
from parquetry.planning.diff import Change, SourcePlan
from parquetry.planning.report import DocumentCounts, RunReport, Work, count_documents, failures_by_reason
from tests.records import failed, item, row, skipped


def change(path, action="added", effort="extract", known=None, listed=True):
    identity = row(path).document_id
    return Change(action, effort, "", identity, "default", "docs", item(path) if listed else None, known)


def plan(*changes, refused=None):
    return SourcePlan("docs", "default", changes, refused=refused)


def counted(counts):
    return {name: value for name, value in counts.as_dict().items() if value}


EVERYTHING = (
    change("new.md"),
    change("edited.md", "changed", known=row("edited.md")),
    change("moved.md", "moved", "row"),
    change("shared.md", "permissions", "row", known=row("shared.md")),
    change("same.md", "unchanged", "nothing", known=row("same.md")),
    change("touched.md", "unchanged", "row", known=row("touched.md")),
    change("gone.md", "removed", "row", known=row("gone.md"), listed=False),
    change("broken.md"),
    change("empty.md"),
    change("still-broken.md", "unchanged", "nothing", known=failed("still-broken.md")),
    change("still-empty.md", "unchanged", "nothing", known=skipped("still-empty.md")),
    change("repaired.md", "changed", known=failed("repaired.md")),
)
WRITTEN = (
    *(row(path) for path in ("new.md", "edited.md", "moved.md", "shared.md", "touched.md", "repaired.md")),
    replace(row("gone.md"), removed=True),
    failed("broken.md"),
    skipped("empty.md"),
)


def test_every_listed_document_is_counted_once_as_what_became_of_it():
    counts = count_documents([plan(*EVERYTHING)], WRITTEN)
    assert counted(counts) == {
        "scanned": 11,
        "added": 1,
        "changed": 2,
        "moved": 1,
        "permissions": 1,
        "unchanged": 2,
        "removed": 1,
        "failed": 2,
        "skipped": 2,
    }
    parts = counts.as_dict()
    assert parts.pop("scanned") == sum(parts.values()) - parts["removed"]


def test_plan_is_counted_as_if_all_went_well():
    counts = count_documents([plan(*EVERYTHING)])
    assert counted(counts) == {
        "scanned": 11,
        "added": 3,
        "changed": 2,
        "moved": 1,
        "permissions": 1,
        "unchanged": 2,
        "removed": 1,
        "failed": 1,
        "skipped": 1,
    }


def test_what_another_run_published_first_is_no_change_of_this_one():
    changes = (
        change("new.md"),
        change("gone.md", "removed", "row", known=row("gone.md"), listed=False),
        change("still-broken.md", "changed", known=failed("still-broken.md")),
    )
    assert counted(count_documents([plan(*changes)], ())) == {"scanned": 2, "unchanged": 1, "failed": 1}


def test_refused_source_counts_as_unchanged_and_loses_nothing():
    changes = (
        change("new.md"),
        change("broken.md", "unchanged", "nothing", known=failed("broken.md")),
        change("gone.md", "removed", "row", known=row("gone.md"), listed=False),
    )
    for written in (None, ()):
        counts = count_documents([plan(*changes, refused="too many")], written)
        assert counted(counts) == {"scanned": 2, "unchanged": 1, "failed": 1}


def test_sources_are_counted_together():
    other = SourcePlan("archive", "default", (replace(change("new.md"), source="archive", document_id="x"),))
    assert count_documents([plan(change("new.md")), other]).added == 2


def test_work_adds_up():
    assert Work(1, 2, 3, 4, 5, 0.5) + Work(10, 20, 30, 40, 50, 0.25) == Work(11, 22, 33, 44, 55, 0.75)


def failure(reason, status="failed"):
    return Failure("id", "default", "docs", "file:///a", status, "extract", reason, "a sentence", 1, "run")


def test_reasons_are_counted_the_most_frequent_first():
    found = failures_by_reason([failure("damaged"), failure("empty"), failure("empty")])
    assert list(found.items()) == [("extract/empty", 2), ("extract/damaged", 1)]


@pytest.mark.parametrize("failures", [(), (failure("damaged"),)])
def test_report_has_the_keys_that_scripts_depend_on(failures):
    report = RunReport("run", 3, 2, 1.23456, DocumentCounts(scanned=1), Work(cost_usd=0.12345678), failures, ("note",))
    told = report.as_json()
    assert list(told) == [
        "run_id",
        "version",
        "seconds",
        "documents",
        "chunks",
        "bytes_read",
        "tokens",
        "description_tokens",
        "cost_usd",
        "failures",
        "warnings",
        "refused",
        "retries",
        "outages",
        "suspended",
        "batches",
        "kept",
        "index_error",
        "seconds_by_stage",
        "slowest",
    ]
    assert list(told["documents"]) == [
        "scanned",
        "added",
        "changed",
        "moved",
        "permissions",
        "unchanged",
        "removed",
        "failed",
        "skipped",
    ]
    assert told["chunks"] == {"written": 0, "embedded": 0, "reused": 0}
    assert (told["seconds"], told["cost_usd"]) == (1.235, 0.123457)
    assert [set(each) for each in told["failures"]] == [{"uri", "status", "stage", "reason", "detail"}] * len(failures)
