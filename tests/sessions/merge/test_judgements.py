"""Several statements are judged in one request: each against its own candidates, and a bad one fails alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from parquetry.model import Access
from parquetry.sessions.merge.compare import guarded
from parquetry.sessions.merge.guards import Objection
from parquetry.sessions.merge.judgements import STATEMENTS, Case, JudgedCase, fitting, judge, question
from parquetry.sessions.model import Candidate
from parquetry.sessions.prompts import load_prompt
from tests.servers.chat_server import ChatServer, Reply, Rule, error, said, said_json
from tests.sessions.asking import DirectAsker
from tests.sessions.known import draft, entry, shown

PROMPT = load_prompt("compare", None)
CASES = (
    Case(draft("Walnut is dried in kiln 3"), tuple(shown(["Kiln 3 is for walnut", "Oak is dried in kiln 4"]))),
    Case(draft("The crane stops in frost"), tuple(shown(["In frost the crane stops"]))),
    Case(draft("Marta keeps the plans"), tuple(shown(["Plans are kept by Marta", "Ivo has the keys"]))),
)


def verdict(statement: int, verdict: str = "new", *ordinals: int) -> dict[str, Any]:
    return {
        "statement": statement,
        "verdict": verdict,
        "ordinals": list(ordinals),
        "merged_text": None,
        "reasoning": "As it is said.",
    }


def reply(*verdicts: Any) -> Reply:
    return said_json({"verdicts": list(verdicts)})


def judged(script: Sequence[Reply] | Rule, cases: Sequence[Case] = CASES) -> tuple[list[JudgedCase], list[Any]]:
    """Return the verdicts on the cases, and the requests sent."""
    with ChatServer(script) as server:
        found = judge(cases, DirectAsker(server), PROMPT)
        return found, [json.loads(body["messages"][1]["content"]) for body in server.bodies]


def told(found: Sequence[JudgedCase]) -> list[tuple[str, list[int]] | str]:
    """Return verdicts with ordinals, and reasons where there is no ordinal."""
    return [
        each.judgement.reason
        if isinstance(each.judgement, Objection)
        else (each.judgement.verdict, list(each.judgement.ordinals))
        for each in found
    ]


def test_statements_are_asked_about_together_and_no_ordinal_belongs_to_two():
    found, (asked,) = judged([reply(verdict(2, "existing", 3), verdict(1), verdict(3, "contradicts", 5, 4))])
    assert [each["statement"] for each in asked["statements"]] == [1, 2, 3]
    assert [each["new"]["text"] for each in asked["statements"]] == [each.draft.text for each in CASES]
    assert [[known["ordinal"] for known in each["known"]] for each in asked["statements"]] == [[1, 2], [3], [4, 5]]
    assert told(found) == [("new", []), ("existing", [1]), ("contradicts", [2, 1])]


def test_ordinal_of_another_statement_replaces_nothing():
    """The candidates of a statement belong to it alone, regardless of the model's reply."""
    for ordinal in (1, 4, 0, -1, 6, 10**30):
        found, _ = judged([reply(verdict(1), verdict(2, "existing", ordinal), verdict(3))])
        assert told(found)[1] == ("existing", [0])
        comparison = guarded(found[1].judgement, CASES[1].draft, CASES[1].candidates, 5, PROMPT)
        assert (comparison.verdict, comparison.judge, comparison.reason) == ("new", "guard", "ordinals")


BAD: dict[str, Any] = {
    "no verdict": None,
    "another verdict": verdict(2, "same"),
    "no ordinals": {name: value for name, value in verdict(2).items() if name != "ordinals"},
    "ordinals as texts": verdict(2) | {"ordinals": ["1"]},
    "text": "existing",
    "number as text": verdict(2) | {"statement": "2"},
    "other statement": verdict(99),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_one_bad_verdict_is_asked_for_again_and_loses_no_other(bad):
    first = [verdict(1, "contradicts", 1), *([bad] if bad is not None else []), verdict(3)]
    with ChatServer([reply(*first), reply(verdict(2, "existing", 3))]) as server:
        found = judge(CASES, DirectAsker(server), PROMPT)
        corrections = server.bodies[1]["messages"]
    assert told(found) == [("contradicts", [1]), ("existing", [1]), ("new", [])]
    assert "no verdict that can be used on the statements 2" in corrections[-1]["content"]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_verdict_that_stays_bad_keeps_its_statement_apart_alone(bad):
    first = [verdict(1, "contradicts", 1), *([bad] if bad is not None else []), verdict(3)]
    found, asked = judged([reply(*first)] * 2)
    assert told(found) == [("contradicts", [1]), "bad-reply", ("new", [])]
    assert len(asked) == 2
    comparison = guarded(found[1].judgement, CASES[1].draft, CASES[1].candidates, 5, PROMPT)
    assert (comparison.verdict, comparison.judge, comparison.concerns) == ("new", "guard", (1,))


def test_first_verdict_on_a_statement_stands():
    """A follow-up request for missing verdicts cannot change an earlier verdict."""
    again = reply(verdict(1, "existing", 1), verdict(2), verdict(3, "existing", 4))
    found, _ = judged([reply(verdict(1), verdict(3)), again])
    assert told(found) == [("new", []), ("new", []), ("new", [])]


def test_verdicts_that_differ_on_one_statement_are_none():
    found, _ = judged([reply(verdict(1), verdict(2), verdict(2, "existing", 3), verdict(3)), reply(verdict(2))])
    assert told(found) == [("new", [])] * 3
    found, asked = judged([reply(verdict(1), verdict(2), verdict(2), verdict(3))])
    assert (told(found), len(asked)) == ([("new", [])] * 3, 1)


def test_statement_that_the_service_refuses_is_found_and_the_others_are_judged():
    def refusing(body: Any) -> Reply:
        content = body["messages"][1]["content"]
        if "crane" in content:
            return error(400, "content policy", "content_filter")
        return reply(*(verdict(number + 1) for number in range(len(json.loads(content)["statements"]))))

    found, _ = judged(refusing)
    assert told(found) == [("new", []), "input-rejected", ("new", [])]


def test_model_that_talks_nonsense_is_not_asked_for_every_statement():
    cases = CASES * 5
    found, asked = judged(lambda _: said("They are quite alike."), cases)
    assert told(found) == ["bad-reply"] * len(cases)
    assert [len(each["statements"]) for each in asked] == [15, 15, 7, 7, 8, 8]


def test_cost_of_a_question_is_counted_once():
    found, _ = judged([reply(verdict(1), verdict(3)), reply(verdict(2))])
    assert [each.spent.input_tokens for each in found] == [240, 0, 0]
    assert {(each.spent.model, each.spent.prompt) for each in found} == {("m", PROMPT.version)}
    rejected = error(400, "content policy", "content_filter")
    found, asked = judged([rejected] * 3 + [reply(verdict(1)), reply(verdict(1), verdict(2))])
    assert len(asked) == 5
    assert sum(each.spent.input_tokens for each in found) == 240


def test_question_has_as_many_statements_as_fit():
    whole = len(question(CASES))
    assert fitting(CASES, whole) == 3
    assert fitting(CASES, whole // 2) == 1
    assert fitting(CASES, 1) == 1
    assert fitting(CASES * 100, 10**9) == STATEMENTS
    assert fitting((), 100) == 0


def test_statements_of_several_scopes_are_never_shown_together():
    mine = Access("individual", None, "ada")
    other = Case(draft("Tea is green", access=mine), (Candidate(1, entry("Tea is black", access=mine), 0.9),))
    with ChatServer([]) as server, pytest.raises(ValueError, match="several scopes"):
        judge([CASES[0], other], DirectAsker(server), PROMPT)


@pytest.mark.parametrize(
    "ordinals",
    [[0], [-1], [1, -1], [1, 0], [2], [2**63], [10**30], [1.0], [True], ["1"], ["entry"], [None], [[1]], "1", None, {}],
    ids=str,
)
def test_ordinals_that_count_from_the_end_or_are_none_replace_nothing(ordinals):
    """Ids, negative positions and non-numbers: only the numbers shown, counted from 1, are valid."""
    case = Case(draft("Kiln 3 is for walnut and oak"), tuple(shown(["Kiln 3 is for walnut"])))
    merge = verdict(1, "merged") | {"ordinals": ordinals, "merged_text": case.draft.text}
    (found,), _ = judged(lambda _: reply(merge), [case])
    comparison = guarded(found.judgement, case.draft, case.candidates, 5, PROMPT)
    assert (comparison.verdict, comparison.judge) == ("new", "guard")


@pytest.mark.parametrize("statement", [0, -1, 2, 10**30, 1.0, True, "1", None, [1]], ids=str)
def test_verdict_on_a_statement_that_was_not_asked_about_is_none(statement):
    case = Case(draft("Kiln 3 is for walnut and oak"), tuple(shown(["Kiln 3 is for walnut"])))
    merge = verdict(1, "merged", 1) | {"statement": statement, "merged_text": case.draft.text}
    (found,), _ = judged(lambda _: reply(merge), [case])
    assert isinstance(found.judgement, Objection)
