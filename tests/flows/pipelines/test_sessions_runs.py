"""Learning from chat sessions end to end, with a scripted model over real HTTP."""

from __future__ import annotations

import json

import pytest

from parquetry.errors import RefusedError, SettingsError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.sessions import AdHoc
from parquetry.model import SESSION_TYPE
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import SearchRequest
from parquetry.sessions.merge.effects import MergeProposal
from parquetry.storage.lake.current import current_rows
from parquetry.storage.search.filters import Caller, Filters
from parquetry.tasks.engine.base import DirectEngine
from tests.servers import session_model
from tests.servers.chat_server import ChatServer, busy, error, said, said_json
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

DRY = "Glue bench: it needs 12 hours to dry."
CLOSED = "Glue bench: it is closed on Fridays."
OPEN = "Glue bench: it is not closed on Fridays."
SAW = "Saw: the saw of hall 3 runs at 4200 rpm."
TEA = "Tea: I drink green tea in the morning."


@pytest.fixture
def shelf(tmp_path, server) -> Shelf:
    return Shelf(tmp_path, server.url)


def test_what_is_learned_is_found_by_search_by_those_who_may_see_it(shelf):
    shelf.write("a.json", [f"public/fact: {SAW}", f"individual/preference: {TEA}", "Good morning."])
    report = shelf.learn()
    assert report.sessions == {"scanned": 1, "new": 1, "grown": 0, "retried": 0, "unchanged": 0, "failed": 0}
    assert report.entries == {
        "new": 2,
        "existing": 0,
        "merged": 0,
        "contradicts": 0,
        "refused": 0,
        "quarantined": 0,
    }
    assert (report.calls, report.cached, report.tokens) == (1, 0, 129)
    (cost,) = report.costs
    assert (cost.source, cost.purpose, cost.tokens, cost.cost_usd) == ("chats", "distill", 129, None)
    assert shelf.live() == [SAW, TEA]

    def found(user: str, what: str = "entries") -> set[str]:
        filters = Filters(caller=Caller(user, "acme"), what=what)
        return {
            hit.row["text"] for hit in shelf.reader().search(SearchRequest("tea beside the saw", filters=filters)).hits
        }

    assert found("bob") == {SAW}
    assert found("ada") == {SAW, TEA}
    assert found("ada", "documents") == set()


def test_session_and_its_file_are_known_and_are_no_documents(shelf):
    shelf.write("a.json", [f"public/fact: {SAW}"])
    shelf.learn()
    assert current_rows(shelf.lake.snapshot()) == []
    (session,) = [
        row for row in current_rows(shelf.lake.snapshot(), what="knowledge") if row.media_type == SESSION_TYPE
    ]
    assert session.path == "a.json!/"
    assert session.uri.endswith("/chats/a.json")
    assert session.metadata["messages"] == 2
    assert (session.access.visibility, session.access.user_id) == ("individual", "ada")


def test_five_replays_change_nothing_and_ask_nothing(shelf, server):
    shelf.write("a.json", [f"public/fact: {DRY}", f"public/fact: {CLOSED}"])
    shelf.write("b.json", [f"public/fact: {DRY}", f"organization/tool: {SAW}"])
    first = shelf.learn()
    live, decisions, asked = shelf.live(), shelf.decisions(), len(server.bodies)
    for _ in range(5):
        report = shelf.learn()
        assert report.version == first.version
        assert report.sessions["unchanged"] == report.sessions["scanned"] == 2
        assert report.calls == report.cached == 0
    assert (shelf.live(), shelf.decisions(), len(server.bodies)) == (live, decisions, asked)


def test_file_that_was_only_touched_is_read_and_asks_nothing(shelf, server):
    shelf.write("a.json", [f"public/fact: {DRY}"])
    shelf.learn()
    asked = len(server.bodies)
    shelf.write("a.json", [f"public/fact: {DRY}"])
    report = shelf.learn()
    assert (report.sessions["unchanged"], report.calls) == (1, 0)
    assert len(server.bodies) == asked


def test_grown_session_gives_only_what_is_new(shelf, server):
    shelf.write("a.json", [f"public/fact: {DRY}"])
    shelf.learn()
    shelf.write("a.json", [f"public/fact: {DRY}", f"public/fact: {SAW}"])
    plan = shelf.plan()
    assert (plan.counts["grown"], plan.estimate.windows) == (1, 1)
    before = len(server.bodies)
    report = shelf.learn()
    assert report.sessions["grown"] == 1
    assert (report.entries["new"], report.entries["existing"]) == (1, 0)
    (body,) = server.bodies[before:]
    shown = session_model.asked(body)
    assert [message["text"] for message in shown["messages"] if message["role"] == "user"] == [f"public/fact: {SAW}"]
    assert f"public/fact: {DRY}" in [message["text"] for message in shown["context"]]


def test_session_whose_beginning_changed_is_read_again_as_a_whole(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}", "Good morning."])
    shelf.learn()
    shelf.write("a.json", [f"public/fact: {SAW}", "Good morning."])
    report = shelf.learn()
    assert (report.sessions["new"], report.entries["new"]) == (1, 1)
    # The earlier content of the session was learned, and stays.
    assert shelf.live() == [DRY, SAW]


def test_vanished_file_removes_nothing(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}"]).rename(shelf.root / "elsewhere.json")
    shelf.write("b.json", [f"public/fact: {SAW}"])
    shelf.learn()
    (shelf.folder / "b.json").unlink()
    report = shelf.learn()
    assert report.sessions["scanned"] == 0
    assert shelf.live() == [SAW]


def test_merge_and_contradiction_are_kept_with_what_they_came_from(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}"], first=1_767_225_600)
    shelf.write("b.json", [f"public/fact: {CLOSED}"], first=1_767_325_600)
    shelf.write("c.json", [f"public/fact: {OPEN}"], first=1_767_425_600)
    report = shelf.learn()
    assert (report.entries["new"], report.entries["merged"], report.entries["contradicts"]) == (1, 1, 1)
    assert shelf.live() == sorted([OPEN, f"{DRY} {CLOSED}"])
    ((contradicted,),) = shelf.rows(f"SELECT len(contradicts) FROM entries WHERE text = '{OPEN}'")
    assert contradicted == 1


def test_one_order_of_comparing_whatever_the_batches(tmp_path, server):
    """Sessions are compared in order of their time, not of the arrival of their answers."""
    seen = []
    for workers, size in ((1, 100), (4, 1)):
        shelf = Shelf(tmp_path / f"{workers}", server.url)
        shelf.sections["sessions"] = {"workers": workers, "batch_sessions": size}
        for number in range(6):
            said = [f"public/fact: Hall {number % 2}: rule {number} holds.", f"organization/fact: Rota {number}: full."]
            shelf.write(f"{9 - number}.json", said, first=1_767_225_600 + 90_000 * number)
        report = shelf.learn()
        seen.append(([(each.kind, each.text) for each in report.decisions], shelf.live()))
    assert seen[0] == seen[1]


def test_plan_tells_what_there_is_to_do_and_writes_nothing(shelf, server):
    shelf.write("a.json", [f"public/fact: {DRY}"])
    shelf.sections["llm"] = {"price_per_million_input_tokens": 10.0}
    plan = shelf.plan().as_json()
    assert plan["sessions"] == {"scanned": 1, "new": 1, "grown": 0, "retried": 0, "unchanged": 0, "failed": 0}
    assert plan["estimate"]["windows"] == 1
    assert plan["estimate"]["cost_usd"] > 0
    assert not (shelf.root / "corpus").exists()
    assert server.bodies == []


def test_run_that_would_cost_more_than_the_budget_spends_nothing(shelf, server):
    shelf.write("a.json", [f"public/fact: {DRY}"])
    shelf.sections["llm"] = {"price_per_million_output_tokens": 10.0}
    shelf.sections["sessions"] = {"budget_usd": shelf.plan().estimate.cost_usd / 2}
    with pytest.raises(RefusedError, match="more than the budget"):
        shelf.learn()
    assert server.bodies == []


def test_budget_that_is_spent_stops_the_run_and_keeps_what_was_answered(tmp_path):
    """Work already paid for is not estimated again, so the next run continues from there."""

    def talkative(body):
        if not session_model.is_distilling(body):
            return session_model.answer(body)
        return said_json(session_model.distilled(session_model.asked(body)), tokens=(120, 100_000))

    with ChatServer(talkative) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.sections["llm"] = {"price_per_million_output_tokens": 10.0}
        for number in range(6):
            shelf.write(f"{number}.json", [f"individual/fact: Hall {number}: is swept."])
        shelf.sections["sessions"] = {"workers": 1, "budget_usd": 2.5}
        with pytest.raises(RefusedError, match="budget"):
            shelf.learn()
        paid = len(server.bodies)
        assert 0 < paid < 6
        assert shelf.live() == []
        estimate = shelf.plan().estimate
        assert (estimate.windows, estimate.kept) == (6 - paid, paid)
        shelf.sections["sessions"] = {"workers": 1}
        report = shelf.learn()
        assert report.cached == paid
        assert sum(map(session_model.is_distilling, server.bodies)) == 6
        assert len(shelf.live()) == 6


@pytest.mark.parametrize(
    ("reply", "reason"),
    [(error(500, "down"), "service-failed"), (busy(), "rate-limited")],
    ids=["service-down", "rate-limited"],
)
def test_session_that_could_not_be_asked_about_is_tried_again_and_others_go_on(tmp_path, reply, reason):
    down = True

    def rule(body):
        if down and "Saw" in json.dumps(body["messages"][1]):
            return reply
        return session_model.answer(body)

    with ChatServer(rule) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.write("a.json", [f"public/fact: {DRY}"])
        shelf.write("b.json", [f"public/fact: {SAW}"])
        report = shelf.learn()
        assert (report.sessions["new"], report.sessions["failed"]) == (1, 1)
        assert {failure.reason for failure in report.failures} >= {reason}
        assert shelf.live() == [DRY]
        down = False
        report = shelf.learn()
        assert (report.sessions["new"], report.sessions["unchanged"], report.sessions["failed"]) == (1, 1, 0)
        assert shelf.live() == [DRY, SAW]


def test_session_whose_comparison_failed_is_left_out_whole(tmp_path):
    down = True

    def rule(body):
        return error(500, "down") if down and not session_model.is_distilling(body) else session_model.answer(body)

    with ChatServer(rule) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.write("a.json", [f"public/fact: {DRY}"], first=1_767_225_600)
        shelf.write("b.json", [f"public/fact: {SAW}", f"public/fact: {CLOSED}"], first=1_767_425_600)
        report = shelf.learn()
        assert (report.sessions["new"], report.sessions["failed"]) == (1, 1)
        assert shelf.live() == [DRY]
        down = False
        distilled = sum(map(session_model.is_distilling, server.bodies))
        report = shelf.learn()
        assert report.entries["merged"] == 1
        assert sum(map(session_model.is_distilling, server.bodies)) == distilled


def test_useless_reply_is_quarantined_and_not_asked_for_again(tmp_path):
    with ChatServer(lambda _: said("I would rather not.")) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.write("a.json", [f"public/fact: {DRY}"])
        report = shelf.learn()
        assert report.entries["quarantined"] == 1
        assert shelf.live() == []
        asked = len(server.bodies)
        assert shelf.learn().sessions["unchanged"] == 1
        assert len(server.bodies) == asked


def test_file_that_holds_no_session_is_read_once(shelf):
    (shelf.folder / "readme.txt").write_text("Nothing to see here.\n")
    shelf.write("a.json", [f"public/fact: {DRY}"])
    report = shelf.learn()
    assert (report.sessions["scanned"], report.sessions["failed"]) == (1, 0)
    assert report.warnings == (f"1 new file holds no chat session, as {(shelf.folder / 'readme.txt').as_uri()}",)
    assert shelf.plan().files == ()


def test_source_in_which_nothing_is_found_says_so(shelf):
    (warning,) = shelf.plan().warnings
    assert f"was found in {shelf.folder}" in warning


def test_damaged_file_fails_alone_and_is_tried_again_when_it_changes(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}"])
    (shelf.folder / "b.json").write_text('{"messages": [{"role": "user", "content": "cut')
    report = shelf.learn()
    assert (report.sessions["new"], report.sessions["failed"]) == (1, 1)
    (failure,) = report.failures
    assert failure.uri.endswith("b.json")
    assert failure.stage == "extract"
    again = shelf.learn()
    assert (again.version, again.sessions["failed"]) == (report.version, 1)
    shelf.write("b.json", [f"public/fact: {SAW}"])
    assert shelf.learn().sessions["failed"] == 0
    assert shelf.live() == [DRY, SAW]


def test_rejected_merge_keeps_both_and_links_them(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}"], first=1_767_225_600)
    shelf.write("b.json", [f"public/fact: {CLOSED}"], first=1_767_325_600)
    shown: list[MergeProposal] = []

    def review(proposals):
        shown.extend(proposals)
        return [proposal.key for proposal in proposals]

    report = shelf.learn(review=review)
    (proposal,) = shown
    assert (proposal.learned, proposal.replaced, proposal.merged) == (CLOSED, (DRY,), f"{DRY} {CLOSED}")
    assert report.entries["merged"] == 0
    assert shelf.live() == sorted([DRY, CLOSED])
    rejected = report.decisions[-1]
    assert (rejected.kind, rejected.judge, rejected.reason) == ("new", "operator", "rejected")
    assert rejected.links == report.decisions[0].adds


def test_approved_merge_is_asked_about_once(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}"], first=1_767_225_600)
    shelf.write("b.json", [f"public/fact: {CLOSED}"], first=1_767_325_600)
    asked = []
    report = shelf.learn(review=lambda proposals: asked.append(len(proposals)) or [])
    assert asked == [1]
    assert report.entries["merged"] == 1


def test_other_model_or_prompt_reads_everything_again_and_finds_what_it_knows(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}"])
    shelf.learn()
    shelf.sections["llm"] = {"model": "another"}
    report = shelf.learn()
    assert (report.sessions["new"], report.calls) == (1, 1)
    assert report.entries["existing"] == 1
    assert shelf.live() == [DRY]


def test_owner_named_on_the_command_line_is_for_places_that_are_not_configured(shelf, tmp_path):
    with pytest.raises(SettingsError, match="configured source"):
        shelf.learn(owner=AdHoc("bob"))
    elsewhere = Shelf(tmp_path / "elsewhere", shelf.url)
    elsewhere.write("a.json", [f"public/fact: {DRY}"])
    shelf.learn(targets=(str(elsewhere.folder),), owner=AdHoc("bob"))
    assert shelf.rows("SELECT visibility, user_id FROM entries") == [("individual", "bob")]


def test_file_may_be_a_document_and_hold_sessions(shelf):
    shelf.write("a.json", [f"public/fact: {DRY}"])
    shelf.source["content"] = "documents"
    run_refresh(Request(shelf.settings), DirectEngine(), Observer())
    shelf.source["content"] = "sessions"
    shelf.learn()
    assert [row.path for row in current_rows(shelf.lake.snapshot())] == ["a.json"]
    assert shelf.live() == [DRY]
