"""Entries in the dashboard: found, with their origin, contradictions, reviews and undoing; each sees what it may."""

import re

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.cli.test_entry_commands import ADA, BOTH, NEVER, STAGING, TABLES, Known
from tests.serving.web.browsing import Visitor
from tests.serving.web.yard import running_yard, until

pytestmark = pytest.mark.slow
DRY, CLOSED = "Glue: it needs 12 hours to dry.", "Glue: keep the <i>bottle</i> closed."
FIRST, SECOND = 1_767_225_600, 1_767_325_600


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Run an application over entries from sessions of Ada and of Bob; nothing carries out its jobs."""
    root = tmp_path_factory.mktemp("learned") / "corpus"
    Known(root).learn()
    settings = parse_settings({"corpus": {"root": str(root)}, "serve": {"wait_seconds": 0.01}}, "test")
    with running_app(settings) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def bearer(app, *rights, **limits):
    token = app.resources.tokens.create("one", rights=list(rights or ("search", "read", "write")), **limits)[1]
    return Visitor(app.url, Authorization=f"Bearer {token}", Origin=app.url)


def test_list_is_narrowed_by_words_kind_audience_and_standing(learned):
    visitor = Visitor(learned.url)
    page = visitor.open("/entries")
    assert "3 entries" in page.text
    for given, texts in (
        ({"q": "never"}, {NEVER.text}),
        ({"kind": "preference"}, {TABLES.text}),
        ({"level": "individual"}, {TABLES.text}),
        ({"standing": "contradicted"}, {NEVER.text, BOTH.text}),
        ({"namespace": "other"}, set()),
    ):
        page = visitor.open("/entries", **given)
        assert {each.text for each in (STAGING, BOTH, NEVER, TABLES) if each.text in page.text} == texts, given
    retired = visitor.open("/entries", standing="retired").text
    assert STAGING.text in retired
    assert BOTH.text not in retired


def test_entry_tells_how_it_came_about_and_what_contradicts_it(learned):
    page = Visitor(learned.url).open(f"/entries/{BOTH.entry_id}")
    contradictions = page.text.partition("Contradictions")[2].partition("How it came about")[0]
    assert BOTH.text in contradictions
    assert NEVER.text in contradictions
    story = page.text.partition("How it came about")[2]
    assert "Merged" in story
    assert f"Replaces {STAGING.text}" in story
    assert "Because: because" in story
    assert "file:///chats/s-3.json" in story
    assert "message m1" in story
    assert len(re.findall("/undo", page.html)) == 5


def test_each_sees_own_entries_and_only_own_sessions(learned):
    ada, bob = bearer(learned, user_id="ada", org_id="acme"), bearer(learned, user_id="bob", org_id="acme")
    assert TABLES.text in ada.open("/entries").text
    assert TABLES.text not in bob.open("/entries").text
    assert bob.open(f"/entries/{TABLES.entry_id}").status == 404
    assert "No entries yet" in bearer(learned, user_id="ada", namespaces=["other"]).open("/entries").text
    page = bob.open(f"/entries/{BOTH.entry_id}")
    assert "s-3.json" not in page.text
    assert "s-4.json" in bob.open(f"/entries/{NEVER.entry_id}").text
    assert BOTH.text not in bearer(learned, user_id="eve", org_id="other").open("/entries").text


def test_undoing_is_for_those_who_could_have_written_the_entry(learned):
    page = bearer(learned, user_id="ada").open(f"/entries/{TABLES.entry_id}")
    (question,) = [link for link in page.links if link.endswith("/undo")]
    assert bearer(learned, user_id="bob").open(question).status == 404
    assert bearer(learned, "read", user_id="ada").open(question).status == 403
    ada = bearer(learned, user_id="ada")
    page = ada.open(question)
    assert "Undo this decision?" in page.text
    assert TABLES.text in page.text
    page = ada.send(page.form(question))
    assert "The decision is being undone." in page.text
    (job,) = learned.resources.jobs.list(kind="undo")
    assert job.owner["user_id"] == "ada"
    assert question.split("/")[3] == job.payload["decision_id"]
    assert ADA.user_id == "ada"


@pytest.fixture
def yard(tmp_path):
    with running_yard(tmp_path, paid=False) as yard:
        yard.chats.write("a.json", [f"public/fact: {DRY}"], first=FIRST)
        learn(yard, review="1")
        yield yard


def learn(yard, **fields):
    """Learn from the sessions; return the page of the job."""
    visitor = yard.visitor
    return until(visitor, visitor.send(visitor.open("/entries").form("/entries/learn"), **fields), "Done")


def test_merge_waits_for_an_answer_and_is_published_after_it(yard):
    visitor = yard.visitor
    yard.chats.write("b.json", [f"public/fact: {CLOSED}"], first=SECOND)
    before = yard.version()
    page = learn(yard)
    assert "1 merge waits for an answer" in page.text
    assert yard.version() == before
    assert "1 merge waits for an answer" in visitor.open("/runs").text
    page = visitor.open("/entries/reviews")
    assert f"{DRY} {CLOSED}" in page.text
    assert not [tag for tag, _ in page.tags if tag == "i"]
    (form,) = [each for each in page.forms if each.action.startswith("/entries/reviews/")]
    reader = bearer(yard.app, "read")
    assert "You may see this merge, and not answer it." in reader.open("/entries/reviews").text
    asked = len(yard.app.resources.jobs.list(kind="sessions"))
    assert visitor.send(form, answer="perhaps").status == 422
    page = visitor.send(form, answer="approved")
    assert "No merge waits for an answer." in page.text
    assert visitor.send(form, answer="rejected").status == 404
    found = settled(yard, asked)
    assert found.state == "completed", found
    entries = visitor.open("/entries").text
    assert "1 entry" in entries
    assert f"{DRY} {CLOSED}" in entries
    # The cited message is shown as it was said.
    (link,) = {each for each in visitor.open("/entries").links if re.fullmatch(r"/entries/[0-9a-f-]{36}", each)}
    page = visitor.open(link)
    assert f"public/fact: {CLOSED}" in page.text
    assert "decided by the language model" in page.text
    undo = next(each for each in reversed(page.links) if each.endswith("/undo"))
    page = visitor.send(visitor.open(undo).form(undo))
    assert "Not known any more" in page.text
    assert "Undone" in page.text
    assert "2 entries" in visitor.open("/entries").text or DRY in visitor.open("/entries").text


def test_rejected_merge_keeps_both(yard):
    visitor = yard.visitor
    yard.chats.write("b.json", [f"public/fact: {CLOSED}"], first=SECOND)
    learn(yard)
    asked = len(yard.app.resources.jobs.list(kind="sessions"))
    page = visitor.open("/entries/reviews")
    (form,) = [each for each in page.forms if each.action.startswith("/entries/reviews/")]
    visitor.send(form, answer="rejected")
    assert settled(yard, asked).state == "completed"
    entries = visitor.open("/entries").text
    assert "2 entries" in entries
    assert DRY in entries
    assert CLOSED in entries
    decisions = visitor.open("/entries", q="closed")
    (link,) = {each for each in decisions.links if re.fullmatch(r"/entries/[0-9a-f-]{36}", each)}
    page = visitor.open(link)
    assert "decided by a person" in page.text
    assert f"Stays apart from {DRY}" in page.text


def settled(yard, before):
    """Return the job that went on after the answer, when it is done."""
    jobs = yard.app.resources.jobs
    found = jobs.list(kind="sessions")
    assert len(found) == before + 1
    return jobs.wait(found[0].id, 240)
