"""The statements of a session are compared in one question, with the same result as comparing them one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from parquetry.storage.maintenance.doctor import examine
from tests.servers import session_model
from tests.servers.chat_server import ChatServer, Reply, said_json
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

FIRST, SECOND, THIRD = 1_767_000_000, 1_767_225_600, 1_767_425_600
HALL = "Hall 3: the gate is open."


def comparing(server: ChatServer) -> list[list[dict[str, Any]]]:
    """Return the statements of each comparison question."""
    return [session_model.asked(body)["statements"] for body in server.bodies if not session_model.is_distilling(body)]


class Judge:
    """A model that learns as `session_model` does, and judges statements by a rule of the test."""

    def __init__(self, rule: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._rule = rule

    def __call__(self, body: Any) -> Reply:
        if session_model.is_distilling(body):
            return session_model.answer(body)
        statements = session_model.asked(body)["statements"]
        return said_json({"verdicts": [{"statement": each["statement"], **self._rule(each)} for each in statements]})


def verdict(name: str, *ordinals: int, text: str | None = None) -> dict[str, Any]:
    return {"verdict": name, "ordinals": list(ordinals), "merged_text": text, "reasoning": "by rule"}


def ordinal_of(shown: dict[str, Any], text: str) -> int | None:
    return next((known["ordinal"] for known in shown["known"] if known["text"] == text), None)


def test_all_statements_of_a_session_take_one_question(tmp_path, server):
    shelf = Shelf(tmp_path, server.url)
    shelf.write("a.json", [f"public/fact: Hall {number}: it has gates." for number in range(8)], first=FIRST)
    shelf.learn()
    before = len(comparing(server))
    shelf.write("b.json", [f"public/fact: Hall {number}: it has many doors." for number in range(8)], first=SECOND)
    report = shelf.learn()
    (statements,) = comparing(server)[before:]
    assert len(statements) == 8
    assert (report.calls, report.entries["merged"]) == (2, 5)
    # Beyond the limit of superseded entries per session, both entries are kept.
    assert len(shelf.live()) == 8 + 3


def test_statements_of_one_session_that_say_the_same_are_one_entry(tmp_path):
    """A statement is compared with earlier statements in the same question as if they were entries."""
    other = "Hall 3: open is the gate."

    def rule(shown: dict[str, Any]) -> dict[str, Any]:
        known = ordinal_of(shown, HALL)
        return verdict("existing", known) if shown["new"]["text"] == other and known else verdict("new")

    with ChatServer(Judge(rule)) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.write("a.json", [f"public/fact: {HALL}", f"public/fact: {other}"])
        report = shelf.learn()
        assert len(comparing(server)) <= 1
    assert shelf.live() == [HALL]
    first, second = report.decisions
    assert (second.kind, second.entry_id) == ("existing", first.entry_id)


def test_two_merges_into_one_entry_compose(tmp_path, server):
    """The second merge is asked again, with the entry as changed by the first one."""
    shelf = Shelf(tmp_path, server.url)
    shelf.write("a.json", ["public/fact: Hall 3: the gate is open."], first=FIRST)
    shelf.learn()
    before = len(comparing(server))
    shelf.write(
        "b.json", ["public/fact: Hall 3: the gate is blue.", "public/fact: Hall 3: the gate is wide."], first=SECOND
    )
    report = shelf.learn()
    assert [len(each) for each in comparing(server)[before:]] == [2, 1]
    assert report.entries["merged"] == 2
    (text,) = shelf.live()
    assert all(word in text for word in ("open", "blue", "wide"))
    assert examine(shelf.lake).healthy


def test_statement_of_an_entry_that_was_merged_meanwhile_is_known_in_the_merge(tmp_path):
    """The merged entry contains the whole statement, so no further question is needed."""
    longer, again = "Hall 3: the gate is open and wide.", "Hall 3: open is the gate."

    def rule(shown: dict[str, Any]) -> dict[str, Any]:
        known = ordinal_of(shown, HALL)
        if known is None:
            return verdict("new")
        if shown["new"]["text"] == longer:
            return verdict("merged", known, text=longer)
        return verdict("existing", known)

    with ChatServer(Judge(rule)) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.write("a.json", [f"public/fact: {HALL}"], first=FIRST)
        shelf.learn()
        shelf.write("b.json", [f"public/fact: {longer}", f"public/fact: {again}"], first=SECOND)
        report = shelf.learn()
        assert len(comparing(server)) == 1
    assert shelf.live() == [longer]
    assert [each.kind for each in report.decisions] == ["merged", "existing"]
    assert report.decisions[1].entry_id == report.decisions[0].entry_id


def test_verdicts_of_one_question_replace_no_more_than_a_session_may(tmp_path, server):
    shelf = Shelf(tmp_path, server.url)
    shelf.sections["sessions"] = {"max_supersessions": 2}
    shelf.write("a.json", [f"public/fact: Hall {number}: it has gates." for number in range(5)], first=FIRST)
    shelf.learn()
    shelf.write("b.json", [f"public/fact: Hall {number}: it has many doors." for number in range(5)], first=SECOND)
    report = shelf.learn()
    assert (report.entries["merged"], report.entries["new"]) == (2, 3)
    stopped = [each for each in report.decisions if each.reason == "supersessions"]
    assert len(stopped) == 3
    assert all(each.links for each in stopped)


def test_one_bad_verdict_leaves_the_others_as_they_are(tmp_path):
    def rule(shown: dict[str, Any]) -> dict[str, Any]:
        return {"verdict": "perhaps"} if "Hall 1" in shown["new"]["text"] else session_model.judged(shown)

    with ChatServer(Judge(rule)) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.write("a.json", [f"public/fact: Hall {number}: it has gates." for number in range(3)], first=FIRST)
        shelf.learn()
        shelf.write("b.json", [f"public/fact: Hall {number}: it has many doors." for number in range(3)], first=SECOND)
        report = shelf.learn()
    assert (report.entries["merged"], report.entries["new"]) == (2, 1)
    (kept,) = [each for each in report.decisions if each.reason == "bad-reply"]
    assert "Hall 1" in kept.text
    live = {entry for (entry,) in shelf.rows("SELECT entry_id FROM entries")}
    assert kept.links
    assert set(kept.links) <= live


def test_no_question_shows_statements_of_two_scopes(tmp_path, server):
    """A model that obeys injections could otherwise carry one user's private data into public entries."""
    shelf = Shelf(tmp_path, server.url)
    levels = ("public", "organization", "individual")
    for path, first, said in (("a.json", FIRST, "gates"), ("b.json", SECOND, "many doors")):
        shelf.write(path, [f"{level}/fact: Hall {level}: it has {said}." for level in levels], first=first)
        shelf.learn()
    questions = comparing(server)
    assert len(questions) == 3
    for statements in questions:
        texts = [each["new"]["text"] for each in statements]
        texts += [known["text"] for each in statements for known in each["known"]]
        assert len({text.split(":")[0] for text in texts}) == 1


def test_another_prompt_for_comparing_asks_nothing_again_about_settled_sessions(tmp_path, server):
    shelf = Shelf(tmp_path, server.url)
    shelf.write("a.json", [f"public/fact: {HALL}"], first=FIRST)
    shelf.write("b.json", ["public/fact: Hall 3: the gate is blue."], first=SECOND)
    shelf.learn()
    asked = len(server.bodies)
    prompt = tmp_path / "compare.md"
    prompt.write_text('Compare. Reply with JSON: {"verdicts": [...]}', "utf-8")
    shelf.sections["sessions"] = {"compare_prompt": str(prompt)}
    report = shelf.learn()
    assert (report.sessions["unchanged"], report.calls, len(server.bodies)) == (2, 0, asked)


def test_repeated_run_finds_its_answers(tmp_path, server):
    """Questions depend only on known entries and messages, so nothing is paid for twice."""
    seen = []
    for name in ("one", "other"):
        shelf = Shelf(tmp_path / name, server.url)
        shelf.write("a.json", [f"public/fact: Hall {number}: it has gates." for number in range(6)], first=FIRST)
        shelf.write("b.json", [f"public/fact: Hall {number}: it has doors." for number in range(6)], first=SECOND)
        shelf.write("c.json", [f"public/fact: Hall {number}: it has roofs." for number in range(6)], first=THIRD)
        shelf.learn()
        seen.append(sorted(path.name for path in (shelf.root / "corpus" / "answers").rglob("*.json")))
    assert seen[0] == seen[1]
