"""Runs in the dashboard: planned, started, watched, cancelled, tried again; versions restored. Without scripts."""

import re

import pytest

from parquetry.reasons import DOCUMENTS
from parquetry.serving.jobs.model import KINDS
from parquetry.serving.web.bars import WIDTH, stage_bars
from parquetry.serving.web.jobs import NAMES
from parquetry.serving.web.repairs import REPAIRS, repair_of
from tests.serving.web.browsing import Visitor
from tests.serving.web.conftest import HOSTILE
from tests.serving.web.yard import BROKEN, HELD, form_with, planned, refreshed, running_yard, started, until

slow = pytest.mark.slow


def test_every_reason_of_a_document_has_something_to_do():
    assert REPAIRS.keys() == DOCUMENTS.keys()


def test_repair_of_a_document_that_was_handed_in_names_no_source_and_no_refresh():
    for reason in DOCUMENTS.keys() - {"broken-listing", "unexpected-answer", "unreadable-answer"}:
        repair = repair_of(reason, uploaded=True)
        assert not re.search(r"source|refresh|these", repair), reason
    assert repair_of("damaged", uploaded=True) == "Replace the file by a whole one, and add it again."
    assert repair_of("damaged") == "Replace the file by a whole one; the next refresh indexes it."


def test_every_kind_of_job_has_a_name():
    assert set(KINDS) == set(NAMES)


def test_bars_are_in_proportion_and_parts_of_the_processing_come_last():
    bars = stage_bars({"fetch": 1.0, "plan": 0.5, "process": 2.0})
    assert [(bar.label, bar.length, bar.inner) for bar in bars] == [
        ("Listing and planning", WIDTH / 4, False),
        ("Processing", WIDTH, False),
        ("Fetching", WIDTH / 2, True),
    ]
    assert stage_bars({"plan": 0.0})[0].length == 0.0
    assert stage_bars({}) == []


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    with running_yard(tmp_path_factory.mktemp("yard")) as yard:
        yard.write("oak.md", "# Oak\n\nAn oak table.")
        yard.write("ash.md", "# Ash\n\nAn ash bench.")
        yard.write(f"{HOSTILE}.docx", BROKEN)
        yard.write("hollow.md", "")
        refreshed(yard.visitor)
        yield yard


@slow
def test_plan_writes_nothing_and_its_run_is_in_the_history_with_a_report(yard):
    visitor, before = yard.visitor, yard.version()
    yard.write("elm.md", "# Elm\n\nAn elm stool.")
    plan = planned(visitor, source="docs")
    assert "Nothing was written or spent." in plan.text
    assert "Added 1" in plan.text
    assert "elm.md" in plan.text
    assert re.search(r"Unchanged \d", plan.text)
    assert re.search(r"Likely cost \$0\.0", plan.text)
    assert yard.version() == before
    page = until(visitor, started(visitor, plan, budget_usd="0.5"), "Report of the run")
    assert "1 added" in page.text
    assert yard.version() == before + 1
    (report,) = [link for link in page.links if link.startswith("/runs/history/")]
    page = visitor.open(report)
    assert "Added 1" in page.text
    # What was paid stands beside what the plan expected, by source and purpose.
    paid, expected = re.search(r"Paid \$([\d.]+) Expected by its plan \$([\d.]+)", page.text).groups()
    assert float(paid) > 0
    assert float(expected) > 0
    assert re.search(r"docs embeddings \d+ \$", page.text)
    told = [given["aria-label"] for tag, given in page.tags if tag == "svg"]
    assert [each for each in told if re.fullmatch(r"Publishing: \d+\.\d\d seconds", each)]
    assert "elm.md" in page.text.partition("Slowest documents")[2]
    assert report in visitor.open("/runs").links


@slow
def test_guard_is_shown_by_the_plan_and_holds_the_run_until_removals_are_allowed(tmp_path):
    with running_yard(tmp_path) as yard:
        visitor = yard.visitor
        yard.write("oak.md", "Oak.")
        refreshed(visitor)
        (yard.docs / "oak.md").unlink()
        plan = planned(visitor)
        assert "A guard holds docs back" in plan.text
        page = until(visitor, started(visitor, plan), "What to do:")
        assert "refused" in page.text
        page = until(visitor, started(visitor, planned(visitor), allow_removals="1"), "Report of the run")
        assert "1 removed" in page.text
        for budget in ("much", "-1", "nan"):
            assert started(visitor, plan, budget_usd=budget).status == 422


@slow
def test_only_the_failed_documents_of_a_reason_are_tried_again(yard):
    visitor = yard.visitor
    runs = visitor.open("/runs")
    assert "Replace the file by a whole one" in runs.text
    yard.write("oak.md", "# Oak\n\nAnother oak table.")
    yard.write("fir.md", "# Fir\n\nA fir shelf.")
    yard.write("hollow.md", "# Hollow\n\nFilled meanwhile.")
    page = until(visitor, visitor.send(form_with(runs, "reason", "empty")), "Report of the run")
    (report,) = [link for link in page.links if link.startswith("/runs/history/")]
    report = visitor.open(report)
    assert "Reindex" in report.text
    assert "Changed 1" in report.text
    assert "Failures by reason" not in report.text
    # What is new or changed beside it was not looked at.
    assert visitor.open("/documents", q="hollow", status="indexed").text.count("hollow.md") == 1
    assert "fir.md" not in visitor.open("/documents", q="fir").text
    page = until(visitor, visitor.send(form_with(visitor.open("/runs"), "reason", "damaged")), "Report of the run")
    (report,) = [link for link in page.links if link.startswith("/runs/history/")]
    report = visitor.open(report)
    assert "Failed 1" in report.text
    assert HOSTILE in report.text
    assert not [given for tag, given in report.tags if tag == "img" and given.get("src") == "x"]
    retried = form_with(report, "reason", "damaged")
    assert retried.values["run"] in report.response.url.path
    assert "Nothing is left to be tried again" in visitor.send(retried, reason="empty").text


@slow
def test_cancelled_run_stops_soon_and_publishes_nothing(yard):
    visitor, before = yard.visitor, yard.version()
    yard.write("held.md", f"The {HELD} digs.")
    yard.gate.clear()
    try:
        plan = planned(visitor, source="docs")
        page = until(visitor, started(visitor, plan), "Reading and indexing")
        waiting = started(visitor, plan)
        # The embedder answers nothing any more: the run ends all the same.
        page = visitor.send(page.form(f"{page.response.url.path}/cancel"))
        page = until(visitor, page, "; nothing was published.")
        assert yard.version() == before
        until(visitor, waiting, "Running")
        waiting = visitor.send(waiting.form(f"{waiting.response.url.path}/cancel"))
        until(visitor, waiting, "; nothing was published.")
    finally:
        yard.gate.set()
        (yard.docs / "held.md").unlink()
    assert yard.version() == before
    listed = visitor.open("/runs")
    assert page.response.url.path in listed.links


@slow
def test_version_shows_what_it_changed_and_is_restored_after_a_question(tmp_path):
    with running_yard(tmp_path) as yard:
        visitor = yard.visitor
        yard.write("oak.md", "Oak.")
        refreshed(visitor)
        yard.write("oak.md", "Oak, planed.")
        yard.write("ash.md", "Ash.")
        refreshed(visitor)
        versions = visitor.open("/runs/versions")
        assert [link for link in versions.links if re.fullmatch(r"/runs/versions/[12]", link)] == [
            "/runs/versions/2",
            "/runs/versions/1",
        ]
        second = visitor.open("/runs/versions/2")
        assert "oak.md Changed" in second.text
        assert "ash.md Added" in second.text
        assert "/runs/versions/2/restore" not in second.links
        question = visitor.open("/runs/versions/1/restore")
        assert "Come back 1 document, 0 entries Go 1 document, 0 entries" in question.text
        page = until(visitor, visitor.send(question.form("/runs/versions/1/restore")), "is restored")
        assert "version 3" in page.text
        assert "1 document came back, 1 went" in page.text
        listed = visitor.open("/documents").text
        assert "oak.md" in listed
        assert "ash.md" not in listed
        assert "Nothing would change" in visitor.open("/runs/versions/1/restore").text
        assert visitor.open("/runs/versions/99").status == 404


@slow
def test_runs_are_for_those_who_see_the_whole_corpus(yard):
    for limits in ({"user_id": "ada"}, {"org_id": "acme"}, {"namespaces": ["default"]}):
        token = yard.app.resources.tokens.create("some", rights=["admin"], **limits)[1]
        visitor = Visitor(yard.app.url, Authorization=f"Bearer {token}")
        assert "/runs" not in visitor.open("/").links
        for path in ("/runs", "/runs/plan", "/runs/versions", "/runs/versions/1", "/runs/versions/1/restore"):
            page = visitor.open(path)
            assert page.status == 403, path
            assert "docs" not in page.text
    everything = yard.app.resources.tokens.create("all", rights=["admin"])[1]
    assert Visitor(yard.app.url, Authorization=f"Bearer {everything}").open("/runs").status == 200
