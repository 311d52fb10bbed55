"""Questions to the language model, each paid for once: cached answers are reused, new ones are cached first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime

from parquetry.errors import TransientError
from parquetry.ids import answer_key
from parquetry.llm.client import Completion, LanguageModel
from parquetry.llm.spending import Ledger, Purpose
from parquetry.sessions.distill.replies import Question
from parquetry.settings.llm import LlmSettings
from parquetry.storage.lake.answers import Answers
from parquetry.tasks.sessions.asking import Asking

Key = tuple[str | None, str]
"""(user, key of the answer)"""


class CacheMiss(Exception):
    """A question without a cached answer, which would have to be paid for."""


class CachedLlm:
    """Ask the language model only questions without a cached answer. Used from all threads of a run.

    Args:
        settings: settings of the model.
        answers: answers of the corpus.
        ledger: ledger of the run.
        check_cancelled: raises if the run was cancelled, so that nothing more is paid for.
        asking: records the questions in flight.
        retry_quarantined: True to ask again where a cached answer is invalid.
    """

    def __init__(
        self,
        settings: LlmSettings,
        answers: Answers,
        ledger: Ledger,
        check_cancelled: Callable[[], None],
        asking: Asking,
        *,
        retry_quarantined: bool = False,
    ) -> None:
        self._settings = settings
        self._answers = answers
        self._ledger = ledger
        self._check_cancelled = check_cancelled
        self._asking = asking
        self._retry_quarantined = retry_quarantined
        self._lock = threading.Lock()
        self._models: dict[Purpose, LanguageModel] = {}
        self._in_work: dict[Key, Future[Completion]] = {}
        self._looked_up = 0
        self.model = self._model("distill").model

    @property
    def looked_up(self) -> int:
        """Number of questions answered from the cache."""
        return self._looked_up

    def ask(self, question: Question) -> Completion:
        """Return the answer to a question; it is cached before it is returned.

        Raises:
            BrokenDocument: the service will never accept this question.
            TransientError: the question could not be asked.
            SettingsError: the key, the quota or the name of the model is not valid.
            RefusedError: the budget is spent.
            StorageError: answers cannot be read or stored.
        """
        self._check_cancelled()
        key = key_of(question, self.model)
        with self._lock:
            other = self._in_work.get(key)
            mine: Future[Completion] = Future()
            if other is None:
                self._in_work[key] = mine
        if other is not None:
            return self._awaited(other)
        try:
            answer = self._kept(question, key) or self._bought(question, key)
            mine.set_result(answer)
            return answer
        finally:
            with self._lock:
                del self._in_work[key]
            mine.cancel()

    def _awaited(self, other: Future[Completion]) -> Completion:
        try:
            answer = other.result()
        except CancelledError as error:
            raise TransientError("question-failed", "the same question was being asked, and that failed") from error
        self._count()
        return answer

    def _kept(self, question: Question, key: Key) -> Completion | None:
        answer = cached_answer(self._answers, key)
        if answer is None or (self._retry_quarantined and not question.is_answered_by(answer.text)):
            return None
        self._count()
        return answer

    def _count(self) -> None:
        with self._lock:
            self._looked_up += 1

    def _bought(self, question: Question, key: Key) -> Completion:
        with self._asking.question(f"what to {question.purpose}"):
            answer = self._model(question.purpose).ask(question.messages, question.schema)
        about = {"purpose": question.purpose, "form": question.form, "at": datetime.now(UTC).isoformat()}
        self._answers.put(*key, {**asdict(answer), **about})
        return answer

    def _model(self, purpose: Purpose) -> LanguageModel:
        with self._lock:
            if purpose not in self._models:
                self._models[purpose] = LanguageModel(self._settings, purpose, self._ledger)
            return self._models[purpose]


class CacheOnlyLlm:
    """Look up cached answers for a plan, without asking a model.

    Args:
        model: name of the language model.
        answers: answers of the corpus; None if there is no corpus yet.
        retry_quarantined: True if the run will ask again where a cached answer is invalid.
    """

    def __init__(self, model: str, answers: Answers | None, *, retry_quarantined: bool = False) -> None:
        self.model = model
        self._answers = answers
        self._retry_quarantined = retry_quarantined

    def ask(self, question: Question) -> Completion:
        """Return the answer to a question.

        Raises:
            CacheMiss: the question has no cached answer, or has to be asked again.
        """
        key = key_of(question, self.model)
        answer = cached_answer(self._answers, key) if self._answers else None
        if answer is None or (self._retry_quarantined and not question.is_answered_by(answer.text)):
            raise CacheMiss
        return answer


def key_of(question: Question, model: str) -> Key:
    """Return the cache key for the answer of a model to a question."""
    return (question.owner.user_id, answer_key(model, question.messages, question.form))


def cached_answer(answers: Answers, key: Key) -> Completion | None:
    """Return a cached answer; None if there is none, or if the stored value is not an answer."""
    found = answers.get(*key)
    if found is None:
        return None
    names = Completion.__dataclass_fields__
    with suppress(TypeError):
        return Completion(**{name: value for name, value in found.items() if name in names})
    return None
