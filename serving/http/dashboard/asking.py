"""One question of the page of chats: through the service that answers clients of the chat proxy."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from fastapi import Request
from starlette.datastructures import FormData

from parquetry.errors import ParquetryError
from parquetry.serving.access.principals import Principal
from parquetry.serving.chat.agents import Agents, ChatAgent
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.chat.options import ChatRequest, RagOptions
from parquetry.serving.chat.retrieval import scope_of
from parquetry.serving.chat.turn import ProxyTurn, begin_turn
from parquetry.serving.chat.upstream import Sender, Upstream
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import namespace_of
from parquetry.serving.http.dashboard.forms import text
from parquetry.serving.http.openai.model_routes import models_of
from parquetry.serving.http.openai.sending import check_no_token, sender_of
from parquetry.serving.http.problems import Problem, known_problem
from parquetry.serving.service.grounding import Sources
from parquetry.serving.service.resources import Resources
from parquetry.serving.web import conversation as chats
from parquetry.serving.web.conversation import AnsweredTurn
from parquetry.serving.web.model_failures import plain_words

_LIST_SECONDS = 3.0
"""seconds that a page waits for the list of models"""
_MOST_MODELS = 200
_LONGEST_NAME = 255
_MOST_PIECES = 256
"""pieces of an answer that wait to be shown before no more are read"""


@dataclass(frozen=True, slots=True)
class Offered:
    """Agents and models to choose from."""

    agents: tuple[str, ...]
    models: tuple[str, ...]
    problem: str
    """why there is no list of models; empty if there is one"""


async def offered(request: Request, caller: Principal, upstream: Upstream) -> Offered:
    """Return what may be asked."""
    agents: Agents = request.app.state.agents
    names = tuple(each.name for each in agents.visible(caller))
    if not upstream.is_configured:
        return Offered(names, (), "")
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            listed = await models_of(upstream, _sender(request, caller, upstream))
    except TimeoutError:
        return Offered(names, (), plain_words("upstream-timeout", 504, ""))
    except UpstreamFailed as error:
        return Offered(names, (), plain_words(error.reason, error.status, error.detail))
    models = [str(each["id"])[:_LONGEST_NAME] for each in listed if each["id"] not in names]
    return Offered(names, tuple(models[:_MOST_MODELS]), "")


def _sender(request: Request, caller: Principal, upstream: Upstream) -> Sender:
    # What a browser sends along is of no concern to the model service.
    return replace(sender_of(request, caller, upstream), headers=())


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A question as the form has it."""

    question: str
    model: str
    """agent or model"""
    turns: tuple[AnsweredTurn, ...]
    """earlier turns"""

    @property
    def messages(self) -> list[dict[str, str]]:
        """Messages for the model."""
        return [*chats.history(self.turns), {"role": "user", "content": self.question}]


def turns_of(fields: FormData) -> tuple[AnsweredTurn, ...]:
    """Return the chat that a page keeps.

    Raises:
        Problem: it is none.
    """
    try:
        return tuple(chats.decoded(text(fields, "turns")))
    except ValueError:
        raise Problem(422, "invalid-request", "this chat cannot be read; begin a new one") from None


def asked_in(fields: FormData) -> ChatQuestion:
    """Return the question of a form.

    Raises:
        Problem: it is missing or too long, or a token of this service is part of it.
    """
    question, model = text(fields, "question").strip(), text(fields, "model").strip()
    if not question or len(question) > chats.LONGEST_QUESTION:
        raise Problem(422, "invalid-request", f"ask a question of at most {chats.LONGEST_QUESTION:,} characters")
    if not model or len(model) > _LONGEST_NAME:
        raise Problem(422, "invalid-request", "choose an agent or a model")
    asked = ChatQuestion(question.encode("utf-8", "replace").decode(), model, turns_of(fields))
    check_no_token(json.dumps([asked.messages, model]).encode())
    return asked


@dataclass(frozen=True, slots=True)
class BegunChat:
    """A question whose passages were found."""

    turn: ProxyTurn
    sender: Sender
    record: Recorded


async def begin(
    request: Request, parts: Resources, caller: Principal, upstream: Upstream, asked: ChatQuestion, *, stream: bool
) -> BegunChat:
    """Search for a question, as the chat proxy does.

    Raises:
        ParquetryError: the search failed, or no model may be asked.
    """
    agents: Agents = request.app.state.agents
    agent: ChatAgent | None = agents.find(asked.model, caller)
    options = RagOptions()
    scope = scope_of(parts, caller, options, agent, lambda: namespace_of(parts, caller))
    record = Recorded(request, caller, "knowledge.query", scope.namespace)
    body: dict[str, Any] = {"model": asked.model, "messages": asked.messages}
    if stream:
        body["stream"] = True
    sender = _sender(request, caller, upstream)
    model = asked.model if agent is None else agent.settings.model
    sources = Sources(numbered=True, first=chats.next_number(asked.turns))
    try:
        turn = await begin_turn(
            *(parts, ChatRequest(options, body), scope, agent),
            without_tools=upstream.is_toolless(model),
            sources=sources,
        )
    except Exception as error:
        record.failed(error, [asked.question])
        raise
    return BegunChat(turn, sender, record)


def finished(asked: ChatQuestion, begun: BegunChat, answer: str) -> AnsweredTurn:
    """Return the turn of an answer."""
    places = tuple((each.document_id, each.chunk_index) for each in begun.turn.sources.passages)
    return AnsweredTurn(
        secrets.token_hex(8),
        asked.question,
        answer,
        asked.model,
        chats.next_number(asked.turns),
        places,
        follows=bool(chats.history(asked.turns)),
    )


def told(error: Exception) -> Problem:
    """Return a failure with plain words about what to do."""
    problem = known_problem(error)
    if not isinstance(error, UpstreamFailed | ParquetryError):
        return problem
    words = plain_words(problem.reason, int(problem.status), problem.detail)
    return Problem(int(problem.status), problem.reason, words, headers=problem.headers)


async def paced(pieces: AsyncGenerator[str], waiting: Callable[[], int], seconds: float = 0.05) -> AsyncGenerator[str]:
    """Yield what has arrived, joined: the larger the part of the page that it changes, the rarer.

    Nothing that has arrived waits for the piece after it, however long a model pauses.

    Args:
        pieces: what arrives; closed at the end.
        waiting: returns the characters of the part that changes.
        seconds: least time between two yields.
    """
    arrived: asyncio.Queue[str | None] = asyncio.Queue(_MOST_PIECES)

    async def read() -> None:
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if piece:
                        await arrived.put(piece)
        finally:
            # Who closes this generator no longer takes anything from the queue.
            if not closing:
                await arrived.put(None)

    closing, due = False, 0.0
    reading = asyncio.create_task(read())
    try:
        while (piece := await arrived.get()) is not None:
            await asyncio.sleep(due - monotonic())
            held = [piece]
            while not arrived.empty() and (piece := arrived.get_nowait()) is not None:
                held.append(piece)
            yield "".join(held)
            if piece is None:
                break
            due = monotonic() + seconds * (1 + waiting() / 2_000)
        await reading
    finally:
        closing = True
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
