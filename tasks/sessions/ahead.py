"""Questions about sessions that are asked ahead, as a batch; sessions whose answers are on their way wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from parquetry.errors import BudgetReached
from parquetry.llm.client import Completion, LanguageModel
from parquetry.sessions.distill.learn import distill
from parquetry.sessions.distill.recall_filter import recalled_texts
from parquetry.sessions.distill.replies import Question
from parquetry.sessions.windows import windows_to_read
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.batches import BatchRecords
from parquetry.tasks.batches.lane import BatchLane
from parquetry.tasks.batches.outbox import Owner
from parquetry.tasks.batches.questions import custom_id, place_of, question_request, question_user
from parquetry.tasks.batches.waiting import Lanes, Patience
from parquetry.tasks.sessions.llm_cache import CacheMiss, CacheOnlyLlm
from parquetry.tasks.sessions.plan import SessionPlan
from parquetry.tasks.sessions.reading import FoundSession
from parquetry.tasks.sessions.run import SessionRun

_MESSAGES = 2
"""messages of a question that is asked for the first time; a further try belongs to the run that saw the reply"""


class _Awaited(Exception):
    """The answer to a question is on its way."""


class QuestionLane:
    """The batches of a run over sessions.

    Args:
        run: the run in progress.
    """

    def __init__(self, run: SessionRun) -> None:
        settings = run.settings
        self._run = run
        answers = Answers(run.lake.layout)
        self.model = run.llm.model
        self._llm = LanguageModel(settings.llm, "distill", run.ledger)
        self._cached = CacheOnlyLlm(self.model, answers, retry_quarantined=run.retry_quarantined)
        self._share = settings.batch_api.price_share
        user = question_user(self._llm, self._share, answers, priced=settings.llm.priced)
        records = BatchRecords(run.lake.layout)
        self._lane = BatchLane(user, records, settings.batch_api, run.ledger, run.stamp.run_id)
        self._owner: Owner = ("", "")
        """source of the session in work"""
        self.waiting: frozenset[str] = frozenset()
        """sessions whose answers are on their way, by id"""
        self.refused: tuple[str, ...] = ()
        """the line on sessions that the budget keeps waiting; empty if it does not"""

    @property
    def lanes(self) -> Lanes:
        return (self._lane,)

    def close(self) -> None:
        self._lane.close()

    def run_ahead(self, plan: SessionPlan) -> None:
        """Take what earlier batches brought, send new questions, and wait as long as the settings say."""
        settings, lane = self._run.settings.batch_api, self._lane
        patience = Patience(settings, self._run.pause)
        lane.collect()
        # Messages that are read again are read by this run alone.
        lane.is_on = settings.sessions != "never" and not self._run.retry_quarantined
        self._find(plan)
        if not settings.takes(settings.sessions, lane.expected_tokens()):
            lane.take_back()
            self._find(plan)
        while True:
            lane.send()
            if not self.waiting or not patience.until_they_end(self.lanes, lane.collect):
                return
            self._find(plan)

    def ask(self, question: Question) -> Completion:
        """Return the cached answer to a question.

        Raises:
            _Awaited: the answer is on its way.
            CacheMiss: the question goes the ordinary way.
        """
        try:
            return self._cached.ask(question)
        except CacheMiss:
            key = custom_id(place_of(question, self.model))
            if len(question.messages) == _MESSAGES and self._lane.waits(
                key, lambda: question_request(question, self._llm, self._share, self._owner)
            ):
                raise _Awaited from None
            raise

    def _find(self, plan: SessionPlan) -> None:
        """Hand over the questions about sessions, and find those that have to wait."""
        self.refused = ()
        self.waiting = frozenset(found.ref.session_id for found in plan.sessions if self._waits(found))

    def _waits(self, found: FoundSession) -> bool:
        self._run.check_cancelled()
        if found.kept is None:
            raise ValueError(f"{found.ref.uri} was not put aside")
        settings, prompt = self._run.settings.sessions, self._run.prompts.distill
        self._owner = (found.file.namespace, found.file.source)
        transcript = self._run.spool.read(found.kept)
        recalled = recalled_texts(transcript.messages)
        is_waiting = False
        for window in windows_to_read(transcript, found.first_new, found.retried, settings):
            try:
                distill(window, found.ref, found.at, recalled, self, prompt, settings)
            except CacheMiss:
                continue
            except _Awaited:
                is_waiting = True
            except BudgetReached as error:
                self.refused = (f"sessions wait that are not sent: {error}",)
                return True
        return is_waiting


def without(plan: SessionPlan, waiting: Collection[str]) -> SessionPlan:
    """Return a plan without some of its sessions, which count as unchanged.

    The files that hold them, or copies of them, count as unread, so that the next run reads them again.

    Args:
        plan: the plan of a run.
        waiting: sessions that wait, by id.
    """
    if not waiting:
        return plan
    left_out = [found for found in plan.sessions if found.ref.session_id in waiting]
    copies = [copy for copy in plan.copies if copy.of in waiting]
    files = {found.file.key for found in (*left_out, *(copy.found for copy in copies))}
    counts = Counter(plan.counts)
    for found in left_out:
        counts[found.change] -= 1
        counts["unchanged"] += 1
    return replace(
        plan,
        files=tuple(read for read in plan.files if read.file.key not in files),
        sessions=tuple(found for found in plan.sessions if found.ref.session_id not in waiting),
        copies=tuple(copy for copy in plan.copies if copy.of not in waiting),
        counts={name: counts[name] for name in plan.counts},
    )


def open_question_lane(run: SessionRun) -> QuestionLane | None:
    """Return the batches of a run; None where nothing is sent as a batch or on its way."""
    if run.stated:
        return None
    is_needed = run.settings.batch_api.sessions != "never" or BatchRecords(run.lake.layout).last() > 0
    return QuestionLane(run) if is_needed else None
