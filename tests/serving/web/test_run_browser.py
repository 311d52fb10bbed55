"""Runs and entries in a real browser: watched, cancelled, tried again, restored, reviewed and undone."""

import re

import pytest

from tests.serving.web.browser_pages import audited
from tests.serving.web.yard import BROKEN, HELD, PATIENCE, refreshed, running_yard

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
SECONDS = PATIENCE * 1000
DRY, CLOSED = "Glue: it needs 12 hours to dry.", "Glue: keep the bottle closed."


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    with running_yard(tmp_path_factory.mktemp("yard")) as yard:
        yard.write("oak.md", "# Oak\n\nAn oak table.")
        yard.write("broken.docx", BROKEN)
        refreshed(yard.visitor)
        yield yard


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    """Run a service that has learned one entry, and has a chat with which it would be merged."""
    with running_yard(tmp_path_factory.mktemp("chats"), paid=False) as yard:
        yard.chats.write("a.json", [f"public/fact: {DRY}"])
        visitor = yard.visitor
        page = visitor.send(visitor.open("/entries").form("/entries/learn"))
        assert yard.app.resources.jobs.wait(page.response.url.path.rpartition("/")[2], PATIENCE).state == "completed"
        yard.chats.write("b.json", [f"public/fact: {CLOSED}"], first=1_767_325_600)
        yield yard


def opened(new_page, yard, path):
    page = new_page(yard.app.url, path)
    page.set_default_timeout(SECONDS)
    return page


def test_run_is_planned_started_watched_and_cancelled(new_page, yard):
    page = opened(new_page, yard, "/runs")
    yard.write("held.md", f"The {HELD} digs.")
    yard.gate.clear()
    try:
        page.get_by_role("link", name="Plan docs").click()
        assert page.get_by_role("checkbox", name="docs").is_checked()
        # The keyboard alone sends the form.
        page.get_by_role("button", name="Plan the refresh").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Start the refresh").click()
        page.get_by_text("Reading and indexing").wait_for()
        page.get_by_role("progressbar").wait_for()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_text("; nothing was published.").wait_for()
        assert page.locator("#job").get_attribute("hx-get") is None
    finally:
        yard.gate.set()
        (yard.docs / "held.md").unlink()


def test_failed_documents_are_tried_again_and_a_version_is_restored(new_page, yard):
    page = opened(new_page, yard, "/runs")
    page.get_by_role("button", name="Try only these again: damaged").click()
    page.get_by_role("link", name="Report of the run").click()
    page.get_by_role("heading", name="Failures by reason").wait_for()
    assert page.get_by_role("img", name=re.compile(r"^Publishing: \d")).count() == 1
    page.get_by_text("1 document", exact=True).wait_for()
    assert document_names(page) == ["broken.docx"]
    page.goto(f"{yard.app.url}/runs/versions/1/restore")
    page.get_by_text("Nothing would change").or_(page.get_by_role("button", name="Restore")).first.wait_for()
    yard.write("ash.md", "Ash.")
    refreshed(yard.visitor)
    page.reload()
    page.get_by_role("button", name="Restore").click()
    page.get_by_text("is restored").wait_for()
    page.goto(f"{yard.app.url}/documents")
    assert page.get_by_role("link", name="ash.md", exact=True).count() == 0


def document_names(page):
    return page.locator(".group .named a").all_inner_texts()


def test_merge_is_reviewed_and_its_decision_undone(new_page, chats):
    page = opened(new_page, chats, "/entries")
    assert page.get_by_role("checkbox", name="Ask me about merges").is_checked()
    page.get_by_role("button", name="Learn now").click()
    page.get_by_role("link", name="1 merge waits for an answer").click()
    audited(page, 1280)
    page.get_by_role("button", name="Merge them").click()
    page.get_by_text("All merges of this run have an answer.").wait_for()
    (job, *_) = chats.app.resources.jobs.list(kind="sessions")
    assert chats.app.resources.jobs.wait(job.id, PATIENCE).state == "completed"
    page.goto(f"{chats.app.url}/entries")
    page.get_by_role("link", name=f"{DRY} {CLOSED}").click()
    page.get_by_role("link", name=re.compile("^Undo merged")).click()
    audited(page, 1280)
    page.get_by_role("button", name="Undo it").click()
    page.get_by_text("The decision is undone").wait_for()
    page.goto(f"{chats.app.url}/entries")
    page.get_by_role("link", name=DRY, exact=True).wait_for()
