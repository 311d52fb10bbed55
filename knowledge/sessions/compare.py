"""What is to become of a draft: the judgement of the language model, between rules that need none and guards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.extract.builder import normalise
from knowledge.sessions.distill import TEXT_CHARACTERS, statement
from knowledge.sessions.entry_rows import scope_of
from knowledge.sessions.guards import Objection, objection_to_existing, objection_to_merge
from knowledge.sessions.instructions import is_instruction
from knowledge.sessions.model import Candidate, Comparison, Draft, Spent, Verdict
from knowledge.sessions.near import equal, nearly_equal
from knowledge.sessions.prompts import Prompt
from knowledge.sessions.replies import Asker, Reply, Useless, request

REASONING_CHARACTERS = 4000
"""of what the model says for a person at most"""


class Judgement(Reply):
    """What the language model replies."""

    verdict: Verdict
    ordinals: list[int]
    merged_text: str | None
    reasoning: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison and what it cost."""

    comparison: Comparison
    spent: Spent


def compare(draft: Draft, candidates: Sequence[Candidate], allowance: int, asker: Asker, prompt: Prompt) -> Compared:
    """Decide what becomes of a draft.

    Args:
        draft: something learned.
        candidates: the live entries of its scope that may say the same, best first, with ordinals from 1.
        allowance: entries that its session may still replace.
        asker: asks the language model, unless a rule decides before.
        prompt: what the model is told.

    Raises:
        ValueError: a candidate is not of the draft's scope, or the ordinals are not those of the candidates in order.
        TransientError: the model could not be reached.
        RefusedError: its budget is spent.
    """
    _check(draft, candidates)
    if (comparison := settled(draft, candidates)) is not None:
        return Compared(comparison, Spent(None, None))
    reply, spent = request(asker, "compare", draft.session.owner, prompt, question(draft, candidates), Judgement)
    if isinstance(reply, Useless):
        # What could not be judged may be known all the same: both are kept, and each tells of the other.
        objection = Objection(reply.reason, normalise(f"{reply.detail}; it said: {reply.raw}"))
        return Compared(_apart(objection, (1,)), spent)
    return Compared(guarded(reply, draft, candidates, allowance, prompt), spent)


def settled(draft: Draft, candidates: Sequence[Candidate]) -> Comparison | None:
    """What becomes of a draft that no language model has to see.

    Args:
        draft: something learned.
        candidates: the known entries that it may be equal to, best first.

    Returns:
        New if there is no candidate, existing if one says the same in the same words; None if the model has to judge.
    """
    if not candidates:
        return Comparison("new", "similarity", None, (), "nothing like it is known", None)
    for candidate in candidates:
        if equal(draft.text, candidate.entry.text):
            return Comparison("existing", "identity", None, (candidate.ordinal,), "it is known in these words", None)
    for candidate in candidates:
        if nearly_equal(draft.text, candidate.entry.text):
            return Comparison("existing", "similarity", None, (candidate.ordinal,), "known in nearly these words", None)
    return None


def question(draft: Draft, candidates: Sequence[Candidate]) -> str:
    """What the language model is shown: in JSON, no statement can end early and go on as something else."""
    known = [
        {
            "ordinal": candidate.ordinal,
            "kind": candidate.entry.kind,
            "said": f"{candidate.entry.valid_from:%Y-%m-%d}",
            "text": candidate.entry.text,
        }
        for candidate in candidates
    ]
    new = {"kind": draft.kind, "said": f"{draft.said_at:%Y-%m-%d}", "text": draft.text}
    return json.dumps({"new": new, "known": known}, ensure_ascii=False)


def guarded(
    reply: Judgement, draft: Draft, candidates: Sequence[Candidate], allowance: int, prompt: Prompt
) -> Comparison:
    """What stands of the model's judgement.

    Args:
        reply: its judgement.
        draft: what it is about.
        candidates: what the model was shown, with ordinals from 1.
        allowance: entries that the draft's session may still replace.
        prompt: what the model was told.

    Returns:
        The judgement; or, if a guard objects, that the draft is new and linked with what the judgement was about.
    """
    reasoning = normalise(reply.reasoning[:REASONING_CHARACTERS])
    if reply.verdict == "new":
        return Comparison("new", "model", None, (), reasoning, None)
    texts = {candidate.ordinal: candidate.entry.text for candidate in candidates}
    concerns = tuple(reply.ordinals)
    if objection := _objection_to_ordinals(reply, len(candidates)):
        within = tuple(sorted(texts.keys() & set(concerns)))
        return _apart(objection, within or (1,), reasoning)
    if reply.verdict == "contradicts":
        return Comparison("contradicts", "model", None, concerns, reasoning, None)
    if reply.verdict == "merged":
        merged = statement(reply.merged_text or "")
        same = [ordinal for ordinal in concerns if nearly_equal(merged, texts[ordinal])]
        if concerns != tuple(same):
            replaced = [texts[ordinal] for ordinal in concerns]
            objection = _objection_to_text(merged, prompt) or _objection_to_number(len(concerns), allowance)
            if objection := objection or objection_to_merge([draft.text, *replaced], merged):
                return _apart(objection, concerns, f"{reasoning} (proposed: {merged[:TEXT_CHARACTERS]})")
            return Comparison("merged", "model", merged, concerns, reasoning, None)
    if objection := objection_to_existing(draft.text, texts[concerns[0]]):
        return _apart(objection, concerns, reasoning)
    return Comparison("existing", "model", None, concerns, reasoning, None)


def _objection_to_text(merged: str, prompt: Prompt) -> Objection | None:
    if not merged or len(merged) > TEXT_CHARACTERS:
        return Objection(
            "merged-text", f"its text has {len(merged):,} characters, and 1 to {TEXT_CHARACTERS:,} are taken"
        )
    if is_instruction(merged, prompt.text):
        return Objection("instruction", "its text is an order to a model or a memory, and no knowledge")
    return None


def _objection_to_number(replaced: int, allowance: int) -> Objection | None:
    if replaced > allowance:
        return Objection("supersessions", f"it would replace {replaced}, and its session may still replace {allowance}")
    return None


def _objection_to_ordinals(reply: Judgement, count: int) -> Objection | None:
    given = reply.ordinals
    if not given or (reply.verdict == "existing" and len(given) > 1):
        return Objection("ordinals", f"the verdict {reply.verdict!r} came with {len(given)} ordinals")
    if len(set(given)) < len(given) or not all(1 <= each <= count for each in given):
        return Objection("ordinals", f"its ordinals are not different ones from 1 to {count}")
    return None


def _apart(objection: Objection, concerns: tuple[int, ...], reasoning: str = "") -> Comparison:
    said = f"{objection.detail}; the model said: {reasoning}" if reasoning else objection.detail
    return Comparison("new", "guard", None, concerns, said, objection.reason)


def _check(draft: Draft, candidates: Sequence[Candidate]) -> None:
    scope = scope_of(draft.session.owner.namespace, draft.access)
    for place, candidate in enumerate(candidates, start=1):
        if candidate.ordinal != place:
            raise ValueError(f"the candidate at place {place} has the ordinal {candidate.ordinal}")
        if scope_of(candidate.entry.namespace, candidate.entry.access) != scope:
            raise ValueError(f"entry {candidate.entry.entry_id} is of another scope than what it is compared with")
