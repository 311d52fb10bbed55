"""Learning from chats through the batch API: every question asked and paid once, comparisons the ordinary way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parquetry.errors import RefusedError, RunSuspended
from parquetry.planning.rows import new_stamp
from parquetry.serving.search.service import SearchRequest
from parquetry.settings.sections import SearchSettings
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.batches import BatchRecords
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.erasure import forget_user
from parquetry.storage.search.filters import Caller, Filters
from tests.servers import session_model
from tests.servers.batch_server import BatchServer
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

DRY = "Glue bench: it needs 12 hours to dry."
CLOSED = "Glue bench: it is closed on Fridays."
SAW = "Saw: the saw of hall 3 runs at 4200 rpm."
TEA = "Tea: I drink green tea in the morning."
PRICES = {"price_per_million_input_tokens": 1000.0, "price_per_million_output_tokens": 10_000.0}
COST = 120 / 1000 + 9 / 100
"""ordinary cost of one reply of the server, in US dollars"""


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


@pytest.fixture
def shelf(tmp_path, server) -> Shelf:
    made = Shelf(tmp_path, server.url)
    made.sections |= {"batch_api": {"sessions": "always"}, "llm": PRICES}
    made.write("a.json", [f"public/fact: {DRY}", f"individual/preference: {TEA}"])
    made.write("b.json", [f"public/fact: {SAW}"])
    return made


def check_paid_once(server, sessions: int) -> None:
    """Check that no conversation was charged twice, and how many were about sessions."""
    charged = server.charged()
    assert set(charged.values()) == {1}
    asked = [json.loads(messages) for messages in charged]
    assert sum(session_model.is_distilling({"messages": each}) for each in asked) == sessions


def test_sessions_wait_for_their_batch_and_a_later_run_learns_from_them(shelf, server):
    first = shelf.learn()
    assert isinstance(first.error, RunSuspended)
    assert first.suspended[0].startswith("2 sessions wait for 1 batch of 2 requests, on the way since ")
    assert first.batches[0].startswith("batch 1 sent: 2 questions, at most $")
    assert (first.sessions["new"], first.sessions["unchanged"], first.cost_usd, shelf.live()) == (0, 2, 0.0, [])
    assert shelf.learn().error.exit_code == 6
    server.complete()
    second = shelf.learn()
    assert (second.error, second.sessions["new"]) == (None, 2)
    assert second.batches == ("batch 1 completed: 2 questions answered",)
    assert shelf.live() == [DRY, SAW, TEA]
    assert (second.tokens, second.cost_usd) == (258, pytest.approx(2 * COST / 2))
    distilled = [cost for cost in second.costs if cost.purpose == "distill"]
    assert [(cost.source, cost.tokens) for cost in distilled] == [("chats", 258)]
    assert distilled[0].cost_usd == pytest.approx(COST)
    assert server.ordinary == []
    check_paid_once(server, 2)
    filters = Filters(caller=Caller("ada", "acme"), what="entries")
    found = shelf.reader().search(SearchRequest("saw of hall 3", filters=filters)).hits
    assert found[0].row["text"] == SAW
    assert shelf.learn().sessions["unchanged"] == 2


def test_comparisons_are_asked_the_ordinary_way(shelf, server):
    shelf.learn()
    server.complete()
    shelf.learn()
    shelf.write("c.json", [f"public/fact: {CLOSED}"])
    shelf.learn()
    server.complete()
    report = shelf.learn()
    assert report.error is None
    assert [session_model.is_distilling(body) for body in server.ordinary] == [False]
    check_paid_once(server, 3)


def test_sessions_with_answers_are_published_while_others_wait(shelf, server):
    shelf.sections["batch_api"] |= {"max_requests": 1}
    shelf.learn()
    assert [len(batch.lines) for batch in server.batches] == [1, 1]
    server.complete(server.batches[1])
    report = shelf.learn()
    assert (report.sessions["new"], report.sessions["unchanged"], report.error.exit_code) == (1, 1, 6)
    server.complete()
    assert shelf.learn().error is None
    assert shelf.live() == [DRY, SAW, TEA]
    check_paid_once(server, 2)


def test_two_sessions_of_one_file_wait_for_each_their_own(shelf, server):
    """The file counts as unread as long as one of its sessions waits."""
    sessions = [
        {"id": str(number), "messages": [{"role": "user", "content": f"public/fact: {text}"}]}
        for number, text in enumerate((DRY, SAW))
    ]
    for name in ("a.json", "b.json"):
        (shelf.folder / name).unlink()
    (shelf.folder / "two.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sessions))
    shelf.sections["batch_api"] |= {"max_requests": 1}
    shelf.learn()
    server.complete(server.batches[0])
    assert shelf.learn().sessions["new"] == 1
    server.complete()
    assert shelf.learn().error is None
    assert shelf.live() == [DRY, SAW]


def test_run_that_waits_learns_by_itself(shelf, server):
    shelf.sections["batch_api"] |= {"wait_minutes": 1, "poll_seconds": 0.01}
    server.ends_at_once = True
    report = shelf.learn()
    assert (report.error, report.sessions["new"], report.cost_usd) == (None, 2, pytest.approx(COST))
    check_paid_once(server, 2)


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_questions_that_a_batch_did_not_begin_are_sent_again(shelf, server, end):
    shelf.learn()
    server.answer(server.batches[0], 1)
    server.end(server.batches[0], end)
    assert shelf.learn().sessions["new"] == 1
    assert [len(batch.lines) for batch in server.batches] == [2, 1]
    server.complete()
    assert shelf.learn().error is None
    assert server.ordinary == []
    check_paid_once(server, 2)


def test_question_that_failed_in_a_batch_is_asked_the_ordinary_way(shelf, server):
    shelf.learn()
    (batch,) = server.batches
    server.refuses = lambda body: "saw" in str(body)
    server.answer(batch)
    server.refuses = lambda _: False
    server.end(batch, "completed")
    report = shelf.learn()
    assert (report.error, report.sessions["new"]) == (None, 2)
    assert len(server.ordinary) == 1
    assert report.cost_usd == pytest.approx(1.5 * COST)
    check_paid_once(server, 2)


def test_invalid_answer_of_a_batch_is_asked_about_once_more_the_ordinary_way(shelf, server):
    shelf.learn()
    (batch,) = server.batches
    server.answer(batch)
    batch.output[0]["response"]["body"]["choices"][0]["message"]["content"] = "I would rather not say."
    server.end(batch, "completed")
    report = shelf.learn()
    assert (report.error, report.sessions["new"], len(server.ordinary)) == (None, 2, 1)
    assert len(server.ordinary[0]["messages"]) > 2


def test_small_work_goes_the_ordinary_way(shelf, server):
    shelf.sections["batch_api"] = {"sessions": "large"}
    report = shelf.learn()
    assert (report.error, report.sessions["new"], server.batches) == (None, 2, [])
    assert report.cost_usd == pytest.approx(2 * COST)


def test_plan_shows_both_prices_and_the_way(shelf, server):
    estimate = shelf.plan().estimate
    assert estimate.is_batched
    assert estimate.cost_usd / 2 < estimate.cost_usd_batch < estimate.cost_usd
    assert estimate.expected_usd == estimate.cost_usd_batch
    shelf.sections["batch_api"] = {}
    estimate = shelf.plan().estimate
    assert not estimate.is_batched
    assert estimate.expected_usd == estimate.cost_usd
    assert server.seen == []


def test_budget_keeps_sessions_from_being_sent_that_could_pass_it(shelf, server):
    for name, text in (("a.json", DRY), ("b.json", SAW)):
        shelf.write(name, [f"public/fact: {text}", "Good morning. " * 400])
    shelf.sections["llm"] = {"price_per_million_input_tokens": 1000.0}
    shelf.sections["sessions"] = {"budget_usd": shelf.plan().estimate.cost_usd_batch * 1.05}
    first = shelf.learn()
    sent = sum(len(batch.lines) for batch in server.batches)
    worst = sum(batch.claim.expected_usd for batch in BatchRecords(layout_of(shelf.settings.corpus.root)).open())
    assert worst <= shelf.settings.sessions.budget_usd
    assert sent == 1
    assert isinstance(first.error, RefusedError)
    assert "raise sessions.budget_usd and run again" in str(first.error)
    shelf.sections["sessions"] = {}
    shelf.learn()
    server.complete()
    assert shelf.learn().error is None
    check_paid_once(server, 2)


def test_answers_about_a_forgotten_user_are_dropped_when_their_batch_ends(shelf, server):
    shelf.learn()
    for name in ("a.json", "b.json"):
        (shelf.folder / name).unlink()
    root = shelf.settings.corpus.root
    forget_user(Lake(root, create=True), "ada", new_stamp(), SearchSettings())
    server.complete()
    shelf.source |= {"user_id": "bob"}
    shelf.write("c.json", [f"public/fact: {SAW}"])
    shelf.learn()
    stored = [file.parent.name for file in Path(root, "answers").rglob("*.json")]
    assert stored == []
    server.complete()
    assert shelf.learn().error is None
    assert shelf.live() == [SAW]
