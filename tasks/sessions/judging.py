"""Have the drafts of a session judged, as many in one question as fit, and apply the verdicts that are still valid.

All drafts of a question are compared with the entries that were live before it, and with earlier drafts of the question
as if these were entries. A draft that turns out to be known, and an entry that is merged meanwhile, are looked up as
the entry that says the same by then. If a verdict refers to an entry that has become another one, the draft is judged
once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from parquetry.embed.base import Vectors
from parquetry.sessions.merge.compare import decided_without_model, guarded
from parquetry.sessions.merge.effects import entry_id_in, entry_of_draft
from parquetry.sessions.merge.guards import Objection
from parquetry.sessions.merge.judgements import Case, Judgement, fitting, judge
from parquetry.sessions.model import Candidate, Comparison, Draft, Entry, Spent
from parquetry.tasks.sessions.batch import total
from parquetry.tasks.sessions.run import SessionRun
from parquetry.tasks.sessions.scope import ScopeState, Vectored

QUESTION_WINDOWS = 2
"""length of a question with statements, at most, as a number of session windows"""


@dataclass
class Undecided:
    """A draft that is not decided yet."""

    place: int
    """0-based index among the drafts of its scope"""
    given: Vectored
    spent: Spent = field(default_factory=lambda: Spent(None, None))
    """cost of the questions about it"""


@dataclass(frozen=True, slots=True)
class ScopeJudging:
    """The drafts of one scope, one session after another.

    `allowance` returns the number of entries that a session may still replace; `decide` applies a comparison with
    candidates.
    """

    run: SessionRun
    state: ScopeState
    allowance: Callable[[str], int]
    decide: Callable[[Undecided, Comparison, Sequence[Candidate]], None]

    def session(self, waiting: Sequence[Undecided]) -> None:
        """Decide all drafts of a session.

        Raises:
            TransientError: the language model could not be asked about some of them.
        """
        most = QUESTION_WINDOWS * self.run.settings.sessions.window_characters
        left = list(waiting)
        while left:
            self.run.check_cancelled()
            open_cases = self._settle(left)
            asked = open_cases[: fitting([case for _, case in open_cases], most)]
            later = [each for each, _ in open_cases[len(asked) :]]
            # The first draft depends on no change by another one, so that every question settles at least one.
            left = [*self._judge(asked), *later]

    def _settle(self, waiting: Sequence[Undecided]) -> list[tuple[Undecided, Case]]:
        """Decide the drafts that need no model; return the others with the candidates to compare them with."""
        found: list[tuple[Undecided, Case]] = []
        earlier: list[tuple[Entry, Vectors]] = []
        for each in waiting:
            draft = each.given.draft
            candidates = self._identical(draft) or self.state.candidates(each.place, each.given, earlier)
            comparison = decided_without_model(draft, candidates)
            if comparison is not None:
                self.decide(each, comparison, candidates)
                continue
            found.append((each, Case(draft, tuple(candidates))))
            earlier.append((entry_of_draft(draft, self.state.scope), each.given.vector))
        return found

    def _identical(self, draft: Draft) -> list[Candidate]:
        """Return the live entry with exactly the same text, regardless of its vector; no entry can be nearer."""
        live = self.state.live([entry_id_in(self.state.scope, draft.text)])
        return [Candidate(1, entry, 1.0) for entry in live.values()]

    def _judge(self, asked: Sequence[tuple[Undecided, Case]]) -> list[Undecided]:
        """Ask about drafts and apply the verdicts in order; return the drafts to be judged once more."""
        if not asked:
            return []
        judged = judge([case for _, case in asked], self.run.llm, self.run.prompts.compare)
        again = []
        for (each, case), said in zip(asked, judged, strict=True):
            each.spent = total((each.spent, said.spent), said.spent.model, said.spent.prompt)
            if not self._acted(each, case, said.judgement):
                again.append(each)
        return again

    def _acted(self, each: Undecided, case: Case, said: Judgement | Objection) -> bool:
        """Apply a verdict, unless it refers to an entry that has changed since it was shown."""
        shown = case.candidates
        current = [replace(one, entry=self.state.now(one.entry.entry_id) or one.entry) for one in shown]
        live = self.state.live([one.entry.entry_id for one in current])
        allowance = self.allowance(case.draft.session.session_id)
        comparison = guarded(said, case.draft, current, allowance, self.run.prompts.compare)
        if isinstance(said, Judgement) and said.verdict != "new":
            concerned = [number - 1 for number in said.ordinals if 1 <= number <= len(shown)]
            if any(current[at].entry.entry_id not in live for at in concerned):
                return False
            changed = any(current[at].entry.entry_id != shown[at].entry.entry_id for at in concerned)
            # A merged entry says everything of its parts: a draft said by it is known there, if no guard objects.
            if changed and comparison.verdict not in ("existing", "contradicts"):
                return False
        self.decide(each, _about_live(comparison, current, live), current)
        return True


def _about_live(comparison: Comparison, candidates: Sequence[Candidate], live: Collection[str]) -> Comparison:
    """Return the comparison with live entries only, each of them once."""
    entries = {number: candidates[number - 1].entry.entry_id for number in comparison.concerns}
    first = {entry_id: number for number, entry_id in reversed(entries.items())}
    return replace(
        comparison,
        concerns=tuple(number for number, entry in entries.items() if entry in live and first[entry] == number),
    )
