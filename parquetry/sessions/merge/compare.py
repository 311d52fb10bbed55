"""Comparison of a draft with candidates: rules that need no language model, and guards over the model's judgement."""

from __future__ import annotations

from collections.abc import Sequence

from parquetry.extract.builder import normalise
from parquetry.sessions.distill.injection import is_instruction
from parquetry.sessions.distill.learn import TEXT_CHARACTERS, statement
from parquetry.sessions.merge.guards import Objection, objection_to_existing, objection_to_merge
from parquetry.sessions.merge.judgements import Judgement
from parquetry.sessions.model import Candidate, Comparison, Draft
from parquetry.sessions.normalise import equal, nearly_equal
from parquetry.sessions.prompts import Prompt

REASONING_CHARACTERS = 4000
"""maximum characters of the model's reasoning, which is for people"""


def decided_without_model(draft: Draft, candidates: Sequence[Candidate]) -> Comparison | None:
    """Return the comparison of a draft that can be decided without a language model.

    Args:
        draft: to compare.
        candidates: known entries that it may be equal to, best first.

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


def guarded(
    reply: Judgement | Objection, draft: Draft, candidates: Sequence[Candidate], allowance: int, prompt: Prompt
) -> Comparison:
    """Apply the guards to the model's judgement.

    Args:
        reply: the judgement, or an objection if there is none. A draft without judgement may be known all the same: it
            is kept beside its most similar candidate, each linked with the other.
        draft: under judgement.
        candidates: shown to the model, with ordinals from 1.
        allowance: number of entries that the draft's session may still replace.
        prompt: given to the model.

    Returns:
        The judgement; or, if a guard objects, a new draft linked with the entries of the judgement.
    """
    if isinstance(reply, Objection):
        return _apart(reply, (1,))
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
