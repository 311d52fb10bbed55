"""Has the drafts of a session judged, as many in one question as fit, and acts on what still holds of the verdicts.

All drafts of a question are judged by what was live before it, and by those before them as if these were entries. One
that turns out to be known, or an entry that is merged meanwhile, is found again in what says it then. What a verdict
would have merged and is another entry now is judged once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from parquetry.embed.base import Vectors
from parquetry.sessions.merge.compare import guarded, settled
from parquetry.sessions.merge.effects import entry_id_in, entry_of_draft
from parquetry.sessions.merge.guards import Objection
from parquetry.sessions.merge.judgements import Case, Judgement, fitting, judge
from parquetry.sessions.model import Candidate, Comparison, Draft, Entry, Spent
from parquetry.tasks.sessions.batch import total
from parquetry.tasks.sessions.run import SessionRun
from parquetry.tasks.sessions.scope import ScopeState, Vectored

QUESTION_WINDOWS = 2
"""windows of a session that are as long as a question with statements at most"""


@dataclass
class Waiting:
    """A draft that is to be decided about."""

    place: int
    """0-based among the drafts of its scope"""
    given: Vectored
    spent: Spent = field(default_factory=lambda: Spent(None, None))
    """on questions about it"""


@dataclass(frozen=True, slots=True)
class ScopeJudging:
    """The drafts of one scope, one session after another.

    `allowance` gives the entries that a session may still replace; `decide` acts on a comparison with candidates.
    """

    run: SessionRun
    state: ScopeState
    allowance: Callable[[str], int]
    decide: Callable[[Waiting, Comparison, Sequence[Candidate]], None]

    def session(self, waiting: Sequence[Waiting]) -> None:
        """Decide about all drafts of a session.

        Raises:
            TransientError: the language model could not be asked about some of them.
        """
        most = QUESTION_WINDOWS * self.run.run.settings.sessions.window_characters
        left = list(waiting)
        while left:
            self.run.run.check_cancelled()
            open_cases = self._settle(left)
            asked = open_cases[: fitting([case for _, case in open_cases], most)]
            later = [each for each, _ in open_cases[len(asked) :]]
            # The first one is about nothing that another one changed, so that every question settles something.
            left = [*self._judge(asked), *later]

    def _settle(self, waiting: Sequence[Waiting]) -> list[tuple[Waiting, Case]]:
        """Decide about the drafts that no model has to see; gives the others with what they are to be compared with."""
        found: list[tuple[Waiting, Case]] = []
        earlier: list[tuple[Entry, Vectors]] = []
        for each in waiting:
            draft = each.given.draft
            candidates = self._identical(draft) or self.state.candidates(each.place, each.given, earlier)
            comparison = settled(draft, candidates)
            if comparison is not None:
                self.decide(each, comparison, candidates)
                continue
            found.append((each, Case(draft, tuple(candidates))))
            earlier.append((entry_of_draft(draft, self.state.scope), each.given.vector))
        return found

    def _identical(self, draft: Draft) -> list[Candidate]:
        """The live entry that says exactly this, whatever its vector; no entry can be nearer."""
        live = self.state.live([entry_id_in(self.state.scope, draft.text)])
        return [Candidate(1, entry, 1.0) for entry in live.values()]

    def _judge(self, asked: Sequence[tuple[Waiting, Case]]) -> list[Waiting]:
        """Ask about drafts and act on the verdicts, in order; gives those that have to be judged once more."""
        if not asked:
            return []
        judged = judge([case for _, case in asked], self.run.asker, self.run.prompts.compare)
        again = []
        for (each, case), said in zip(asked, judged, strict=True):
            each.spent = total((each.spent, said.spent), said.spent.model, said.spent.prompt)
            if not self._acted(each, case, said.judgement):
                again.append(each)
        return again

    def _acted(self, each: Waiting, case: Case, said: Judgement | Objection) -> bool:
        """Act on a verdict, unless it is about something that is not what it was when it was shown."""
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
            # What took in an entry says all of it: a draft that the entry says is known there, if no guard objects.
            if changed and comparison.verdict not in ("existing", "contradicts"):
                return False
        self.decide(each, _about_live(comparison, current, live), current)
        return True


def _about_live(comparison: Comparison, candidates: Sequence[Candidate], live: Collection[str]) -> Comparison:
    """The comparison without what is no entry, and with each entry once."""
    entries = {number: candidates[number - 1].entry.entry_id for number in comparison.concerns}
    first = {entry_id: number for number, entry_id in reversed(entries.items())}
    return replace(
        comparison,
        concerns=tuple(number for number, entry in entries.items() if entry in live and first[entry] == number),
    )
