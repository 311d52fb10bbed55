"""What is to become of a draft: the judgement of the language model, between rules that need none and guards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knowledge.sessions.model import Candidate, Comparison, Draft, Spent
from knowledge.sessions.near import equal, nearly_equal

if TYPE_CHECKING:
    from knowledge.sessions.prompts import Prompt
    from knowledge.sessions.replies import Asker


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison and what it cost."""

    comparison: Comparison
    spent: Spent


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
    """
    raise NotImplementedError
