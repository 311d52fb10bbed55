"""The language model's judgements of several statements, asked in one question and read statement by statement.

An unusable verdict, or a statement that a service refuses, does not affect the others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from parquetry.extract.builder import normalise
from parquetry.llm.calls import INPUT_REJECTED
from parquetry.llm.json_reply import complaint, json_object
from parquetry.sessions.distill.replies import LlmClient, Reply, Useless, request
from parquetry.sessions.ledger.entry_rows import scope_of
from parquetry.sessions.merge.guards import Objection
from parquetry.sessions.model import Candidate, Draft, Spent, Verdict
from parquetry.sessions.prompts import Prompt

STATEMENTS = 100
"""maximum statements in one question: the verdicts on more would exceed the length that models write well"""
_COMPLAINTS = 5
"""maximum complaints about one reply"""


@dataclass(frozen=True, slots=True)
class Case:
    """A draft for the language model to judge."""

    draft: Draft
    candidates: tuple[Candidate, ...]
    """entries of its scope that may say the same, most alike first, with ordinals from 1; at least one"""


class Judgement(Reply):
    """Judgement of one statement by the language model."""

    statement: int
    """number of the statement in the question"""
    verdict: Verdict
    ordinals: list[int]
    """numbers of known statements in the question; in a `Judged`, those of the case"""
    merged_text: str | None
    reasoning: str


class Judgements(Reply):
    """Reply of the language model."""

    verdicts: list[Judgement]


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """Judgement of one case, with its cost."""

    judgement: Judgement | Objection
    """its ordinals are those of the case's candidates, 0 for one that belongs to another case or to none; an objection
    explains a missing judgement"""
    spent: Spent
    """cost of the whole question for its first case; for the others only the model and the prompt"""


def fitting(cases: Sequence[Case], characters: int) -> int:
    """Return how many of some cases, from the first on, fit into one question: at least one.

    Args:
        cases: in order.
        characters: desired maximum of the question.
    """
    taken = 0
    for number, case in enumerate(cases[:STATEMENTS]):
        taken += len(_json(_shown(case, 1, 1)))
        if taken > characters and number:
            return number
    return min(len(cases), STATEMENTS)


def judge(cases: Sequence[Case], llm: LlmClient, prompt: Prompt) -> list[JudgedCase]:
    """Have the language model judge cases of one scope in one question; in more if the question is refused as a whole.

    Args:
        cases: of one session, in order.
        llm: client of the language model.
        prompt: instructions for the model.

    Returns:
        One judgement per case, in the same order.

    Raises:
        ValueError: a candidate is not of its draft's scope, drafts are of several scopes, or ordinals are not in order.
        TransientError: the model could not be reached.
        RefusedError: its budget is spent.
    """
    _check(cases)
    return _judged(cases, llm, prompt, again=True)


def question(cases: Sequence[Case]) -> str:
    """Build the question for the language model: in JSON, no statement can end early and continue as something else.

    Known statements have unique ordinals, so that one which belongs to another statement is detected.
    """
    shown, first = [], 1
    for number, case in enumerate(cases, start=1):
        shown.append(_shown(case, number, first))
        first += len(case.candidates)
    return _json({"statements": shown})


def _judged(cases: Sequence[Case], llm: LlmClient, prompt: Prompt, *, again: bool) -> list[JudgedCase]:
    reading = _Reading(len(cases))
    owner = cases[0].draft.session.owner
    reply, spent = request(llm, "compare", owner, prompt, question(cases), Judgements, reading)
    numbers = range(1, len(cases) + 1)
    firsts = dict(zip(numbers, _first_ordinals(cases), strict=True))
    judged: dict[int, Judgement | Objection] = {
        number: _of_case(reading.found[number], firsts[number], cases[number - 1])
        for number in numbers
        if number in reading.found
    }
    costs = {number: replace(spent, input_tokens=0, output_tokens=0, cost_usd=0.0) for number in numbers} | {1: spent}
    left = [number for number in numbers if number not in judged]
    if isinstance(reply, Useless):
        objection = Objection(reply.reason, normalise(f"{reply.detail}; it said: {reply.raw}"))
        # A single statement may be the cause of a refusal. A model that replies with nonsense gets one more chance.
        if len(left) > 1 and (again or reply.reason == INPUT_REJECTED):
            for half in (left[: len(left) // 2], left[len(left) // 2 :]):
                others = _judged([cases[number - 1] for number in half], llm, prompt, again=False)
                for number, other in zip(half, others, strict=True):
                    judged[number] = other.judgement
                    costs[number] = _sum(costs[number], other.spent)
        else:
            judged |= dict.fromkeys(left, objection)
    return [JudgedCase(judged[number], costs[number]) for number in numbers]


class _Reading:
    """Collect the usable verdicts from consecutive replies; the first verdict on a statement counts."""

    def __init__(self, statements: int) -> None:
        self._numbers = range(1, statements + 1)
        self.found: dict[int, Judgement] = {}
        """by number of the statement"""

    def __call__(self, text: str) -> Judgements:
        """Return the verdicts of all replies so far.

        Raises:
            ValueError: a statement has no verdict.
        """
        value = json_object(text)
        items = value.get("verdicts") if isinstance(value, dict) else None
        if not isinstance(items, list):
            raise ValueError("it has to be an object with a list of `verdicts`")  # noqa: TRY004 - read by `request`
        wrong: list[str] = []
        usable: list[Judgement] = []
        for place, item in enumerate(items):
            try:
                usable.append(Judgement.model_validate(item))
            except ValidationError as error:
                wrong.append(f"verdicts.{place}.{complaint(error, cut=False)}")
        told = Counter(each.statement for each in {_json(each.model_dump()): each for each in usable}.values())
        wrong += [f"there are different verdicts on statement {number}" for number, count in told.items() if count > 1]
        for each in usable:
            if told[each.statement] == 1 and each.statement in self._numbers:
                self.found.setdefault(each.statement, each)
        if missing := [number for number in self._numbers if number not in self.found]:
            listed = ", ".join(map(str, missing))
            wrong = [*wrong[:_COMPLAINTS], f"there is no verdict that can be used on the statements {listed}"]
            raise ValueError("; ".join(wrong))
        return Judgements(verdicts=[self.found[number] for number in self._numbers])


def _first_ordinals(cases: Sequence[Case]) -> list[int]:
    firsts, first = [], 1
    for case in cases:
        firsts.append(first)
        first += len(case.candidates)
    return firsts


def _of_case(judgement: Judgement, first: int, case: Case) -> Judgement:
    """Return the judgement with the ordinals of the case's own candidates."""
    own = range(1, len(case.candidates) + 1)
    ordinals = [ordinal - first + 1 if ordinal - first + 1 in own else 0 for ordinal in judgement.ordinals]
    return judgement.model_copy(update={"ordinals": ordinals})


def _shown(case: Case, number: int, first: int) -> Mapping[str, Any]:
    draft = case.draft
    known = [
        {
            "ordinal": first + place,
            "kind": candidate.entry.kind,
            "said": f"{candidate.entry.valid_from:%Y-%m-%d}",
            "text": candidate.entry.text,
        }
        for place, candidate in enumerate(case.candidates)
    ]
    new = {"kind": draft.kind, "said": f"{draft.said_at:%Y-%m-%d}", "text": draft.text}
    return {"statement": number, "new": new, "known": known}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _sum(one: Spent, other: Spent) -> Spent:
    return replace(
        one,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_usd=one.cost_usd + other.cost_usd,
    )


def _check(cases: Sequence[Case]) -> None:
    scopes = {scope_of(case.draft.session.owner.namespace, case.draft.access) for case in cases}
    if len(scopes) > 1:
        raise ValueError("statements of several scopes are never shown together")
    for case in cases:
        for place, candidate in enumerate(case.candidates, start=1):
            if candidate.ordinal != place:
                raise ValueError(f"the candidate at place {place} has the ordinal {candidate.ordinal}")
            if scope_of(candidate.entry.namespace, candidate.entry.access) not in scopes:
                raise ValueError(f"entry {candidate.entry.entry_id} is of another scope than what it is compared with")
