"""The lane for questions about chat sessions: the answers of a batch go among the cached ones, where runs look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

from parquetry import ids
from parquetry.llm.client import ANSWER_TOKENS, Completion, LanguageModel, expected_tokens, most_tokens
from parquetry.llm.spending import Usage
from parquetry.sessions.distill.replies import Question
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.batches import BatchItem, OpenBatch
from parquetry.tasks.batches.lane_user import LaneUser
from parquetry.tasks.batches.outbox import BatchRequest, Owner

ENDPOINT = "/v1/chat/completions"


def question_user(model: LanguageModel, price_share: float, answers: Answers, *, priced: bool) -> LaneUser[Completion]:
    """Return the parts of a lane for questions.

    Args:
        model: the language model.
        price_share: price of a batch, as a share of the ordinary price.
        answers: answers of the corpus.
        priced: True if the price of the model is known.
    """

    def read(reply: object) -> tuple[Completion, Usage]:
        answer = model.batch_answer(reply, price_share)
        return answer, answer.usage

    store = partial(_store, answers)
    setting, service = "batch_api.sessions", model.batches()
    return LaneUser("distill", model.model, ENDPOINT, setting, "question", service, read, store, priced)


def question_request(question: Question, model: LanguageModel, price_share: float, owner: Owner) -> BatchRequest:
    """Return the request for the answer to a question.

    Args:
        question: the question.
        model: the language model.
        price_share: price of a batch, as a share of the ordinary price.
        owner: source of the session.
    """
    body = model.batch_request(question.messages, question.schema)
    tokens = most_tokens(question.messages) + model.reply_tokens(question.messages)
    usd = model.most_usd(question.messages) * price_share
    likely = expected_tokens(question.messages) + ANSWER_TOKENS
    return BatchRequest(body, owner, tokens, usd, likely, place_of(question, model.model))


def place_of(question: Question, model: str) -> str:
    """Return where the answer to a question is stored: folder of its owner and key."""
    key = ids.answer_key(model, question.messages, question.form)
    return f"{ids.owner_folder(question.owner.user_id)}/{key}"


def custom_id(place: str) -> str:
    """Return the id of a question in a batch, which tells nothing of its owner."""
    return ids.name_hash(place)


def _store(
    answers: Answers,
    batch: OpenBatch,
    part: int,  # noqa: ARG001 - every answer has a file of its own
    results: Sequence[tuple[BatchItem, Completion]],
) -> None:
    about = {"purpose": batch.claim.purpose, "at": datetime.now(UTC).isoformat()}
    for item, answer in results:
        answers.put_at(item.place, {**asdict(answer), **about})
