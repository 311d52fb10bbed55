"""The page of chats over the corpus: asked and answered whole, or streamed to a script; judged."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

from fastapi import APIRouter, Query, Request, Response

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.chat.answer_text import AnswerText
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.chat.loop import answer_streamed, answer_whole, open_stream, relay_of
from parquetry.serving.chat.upstream import Upstream, UpstreamAnswer
from parquetry.serving.chat.usage import tokens_of
from parquetry.serving.http.answers import GONE, outcome_of
from parquetry.serving.http.callers import Parts, PublishedParts, SearchCaller
from parquetry.serving.http.dashboard.asking import (
    BegunChat,
    ChatQuestion,
    asked_in,
    begin,
    finished,
    offered,
    paced,
    told,
    turns_of,
)
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import HEADERS, page, part
from parquetry.serving.http.dashboard.paths import ASK
from parquetry.serving.http.judging import demand_judging
from parquetry.serving.http.openai.sending import (
    ClientGone,
    ModelService,
    RelayedResponse,
    gone_answer,
    unless_gone,
)
from parquetry.serving.http.problems import Problem
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.feedback import Judge, JudgedResult
from parquetry.serving.service.resources import Resources
from parquetry.serving.web import conversation as chats
from parquetry.serving.web.answer_blocks import MOST_CHARACTERS, GrowingAnswer, blocks_of, cited_in
from parquetry.serving.web.conversation import AnsweredTurn, Verdict
from parquetry.serving.web.source_cards import SourceCard, cards_of

router = APIRouter(include_in_schema=False)
_VERDICTS: dict[str, Verdict] = {"good": "good", "bad": "bad", "none": ""}
_CUT = "\n\n(The answer was longer than this page shows.)"


@router.get(ASK)
async def show_ask(
    request: Request, caller: SearchCaller, parts: Parts, upstream: ModelService, model: str = Query("", max_length=255)
) -> Response:
    """Show an empty chat, or what to set for one."""
    return await _ask_page(request, caller, parts, upstream, (), model=model)


@router.post(ASK)
async def ask(
    request: Request, caller: SearchCaller, parts: PublishedParts, upstream: ModelService, fields: CheckedForm
) -> Response:
    """Answer a question as a whole page, for browsers without scripts."""
    asked = asked_in(fields)
    try:
        begun, answer = await unless_gone(request, _whole(request, parts, caller, upstream, asked))
    except ClientGone:
        return gone_answer()
    except UpstreamFailed as error:
        problem = told(error)
        return await _ask_page(
            *(request, caller, parts, upstream, asked.turns),
            model=asked.model,
            question=asked.question,
            problem=problem,
        )
    turns = chats.with_turn(asked.turns, finished(asked, begun, answer))
    return await _ask_page(request, caller, parts, upstream, turns, model=asked.model)


async def _whole(
    request: Request, parts: Resources, caller: Principal, upstream: Upstream, asked: ChatQuestion
) -> tuple[BegunChat, str]:
    begun = await begin(request, parts, caller, upstream, asked, stream=False)
    try:
        value = await answer_whole(begun.turn, upstream, begun.sender)
    except BaseException as error:
        if isinstance(error, Exception):
            begun.record.failed(error, [asked.question])
        else:
            begun.record.left([asked.question])
        raise
    usage = value.get("usage")
    begun.record.answered(begun.turn.all_hits, begun.turn.all_queries, status=200)
    begun.record.spent(*tokens_of(usage if isinstance(usage, dict) else {}))
    answer = value["choices"][0]["message"].get("content")
    return begun, _bounded(answer if isinstance(answer, str) else "")


def _bounded(answer: str) -> str:
    plain = answer.encode("utf-8", "replace").decode()
    return plain if len(plain) <= MOST_CHARACTERS - len(_CUT) else plain[: MOST_CHARACTERS - len(_CUT)] + _CUT


@router.post(f"{ASK}/stream")
async def ask_streamed(
    request: Request, caller: SearchCaller, parts: PublishedParts, upstream: ModelService, fields: CheckedForm
) -> Response:
    """Answer a question piece by piece: each line is an object in JSON with a part of the page."""
    asked = asked_in(fields)
    try:
        begun, opened = await unless_gone(request, _opened(request, parts, caller, upstream, asked))
    except ClientGone:
        return gone_answer()
    except UpstreamFailed as error:
        raise told(error) from error
    stream = AnswerStream(request, parts, caller, upstream, asked, begun, opened)
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    headers += [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no")]
    return RelayedResponse(stream.lines(), stream.ended, headers=headers)


async def _opened(
    request: Request, parts: Resources, caller: Principal, upstream: Upstream, asked: ChatQuestion
) -> tuple[BegunChat, UpstreamAnswer]:
    begun = await begin(request, parts, caller, upstream, asked, stream=True)
    try:
        return begun, await open_stream(begun.turn, upstream, begun.sender)
    except BaseException as error:
        if isinstance(error, Exception):
            begun.record.failed(error, [asked.question])
        else:
            begun.record.left([asked.question])
        raise


class AnswerStream:
    """An answer on its way to the page. Closed early, it ends the request to the model service."""

    def __init__(
        self,
        request: Request,
        parts: Resources,
        caller: Principal,
        upstream: Upstream,
        asked: ChatQuestion,
        begun: BegunChat,
        opened: UpstreamAnswer,
    ) -> None:
        self._request, self._parts, self._caller, self._upstream = request, parts, caller, upstream
        self._asked, self._begun, self._opened = asked, begun, opened
        self._relay = relay_of(begun.turn, upstream, begun.sender)
        self._text: list[str] = []
        self._growing = GrowingAnswer()
        self._outcome: tuple[int, str | None] = (GONE, None)

    @property
    def _known(self) -> frozenset[int]:
        first = chats.next_number(self._asked.turns)
        return chats.numbers(self._asked.turns) | {*range(first, first + len(self._begun.turn.sources.passages))}

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield the lines."""
        try:
            yield _line(sources=await self._sources())
            async with aclosing(paced(self._pieces(), lambda: self._growing.waiting)) as texts:
                async for text_part in texts:
                    self._text.append(text_part)
                    self._growing.add(text_part)
                    if self._growing.length > MOST_CHARACTERS - len(_CUT):
                        break
                    yield self._blocks()
            turn = finished(self._asked, self._begun, _bounded("".join(self._text)))
            self._outcome = (200, None)
            turns = chats.with_turn(self._asked.turns, turn)
            yield _line(turn=await self._turn(turn), turns=chats.encoded(turns))
        except Exception as error:  # noqa: BLE001 - the edge of a stream that has begun: its page learns of any error
            self._outcome = outcome_of(error)
            yield self._blocks()
            yield _line(error=told(error).detail)

    async def _pieces(self) -> AsyncGenerator[str]:
        reading, begun = AnswerText(), self._begun
        relayed = answer_streamed(begun.turn, self._upstream, begun.sender, self._opened, self._relay)
        async with aclosing(cast("AsyncGenerator[bytes]", relayed)) as blocks:
            async for block in blocks:
                yield reading.feed(block)

    def _blocks(self) -> bytes:
        kept, blocks = self._growing.blocks(self._known)
        return _line(keep=kept, blocks=part("answer_part.html", blocks=blocks))

    async def _sources(self) -> str:
        number = len(self._begun.turn.sources.passages)
        return part("waiting_part.html", sources=number)

    async def _turn(self, turn: AnsweredTurn) -> str:
        shown = await in_thread(_shown, self._parts, self._caller, [turn], chats.numbers(self._asked.turns))
        return part("turn_part.html", shown=shown[0], may_judge=_may_judge(self._parts), **_rights(self._caller))

    async def ended(self) -> None:
        """End the request to the model service, and record the chat."""
        self._opened.close()
        status, reason = self._outcome
        turn = self._begun.turn
        self._begun.record.answered(turn.all_hits, turn.all_queries, status=status, reason=reason)
        self._begun.record.spent(*tokens_of(self._relay.usage))


def _line(**values: Any) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode("ascii") + b"\n"


def _rights(caller: Principal) -> dict[str, bool]:
    return {"may_read": caller.may("read")}


def _may_judge(parts: Resources) -> bool:
    return not parts.settings.serve.read_only


def _shown(
    parts: Resources, caller: Principal, turns: Sequence[AnsweredTurn], earlier: frozenset[int] = frozenset()
) -> list[dict[str, Any]]:
    """Return turns as pages show them, with the sources that the caller sees.

    Args:
        parts: parts of the service.
        caller: whom they are shown to.
        turns: the turns.
        earlier: numbers of sources of turns before them, which stand on the page already.
    """
    found, known = [], set(earlier)
    with parts.follower.reader() as reader:
        for turn in turns:
            cards = cards_of(reader, caller, turn.sources, turn.first)
            known |= {each.number for each in cards}
            cited = cited_in(turn.answer, known)
            found.append(
                {
                    "turn": turn,
                    "blocks": blocks_of(turn.answer, known),
                    "cites": bool(cited),
                    "cited": [each for each in cards if each.number in cited],
                    "others": [each for each in cards if each.number not in cited],
                }
            )
    return found


async def _ask_page(
    request: Request,
    caller: Principal,
    parts: Resources,
    upstream: Upstream,
    turns: Sequence[AnsweredTurn],
    *,
    model: str = "",
    question: str = "",
    problem: Problem | None = None,
) -> Response:
    choices = await offered(request, caller, upstream)
    # Nothing to look up, and perhaps no version yet.
    shown = await in_thread(_shown, parts, caller, turns) if turns else []
    return page(
        request,
        "ask.html",
        200 if problem is None else int(problem.status),
        configured=upstream.is_configured,
        choices=choices,
        model=model,
        question=question,
        problem=problem,
        turns=shown,
        state=chats.encoded(turns) if turns else "",
        may_judge=_may_judge(parts),
        may_set=caller.may("admin"),
        longest=chats.LONGEST_QUESTION,
        **_rights(caller),
    )


@router.post(f"{ASK}/judgement")
async def judge_answer(
    request: Request, caller: SearchCaller, parts: PublishedParts, upstream: ModelService, fields: CheckedForm
) -> Response:
    """Keep a judgement on an answer, change it, or take it back."""
    demand_judging(parts)
    turns = list(turns_of(fields))
    meant, _, given = text(fields, "judge").partition(":")
    place = next((place for place, turn in enumerate(turns) if turn.id == meant), None)
    if place is None or given not in _VERDICTS:
        raise Problem(422, "invalid-request", "a judgement needs an answer, and whether it is good")
    verdict = _VERDICTS[given]
    await in_thread(_judge, parts, caller, turns[place], verdict)
    turns[place] = chats.judged(turns[place], verdict)
    if request.headers.get("hx-request") == "true":
        html = part("verdicts_part.html", turn=turns[place])
        return Response(_line(verdicts=html, turns=chats.encoded(turns)), 200, dict(HEADERS), "application/x-ndjson")
    return await _ask_page(request, caller, parts, upstream, turns, model=text(fields, "model"))


def _judge(parts: Resources, caller: Principal, turn: AnsweredTurn, verdict: Verdict) -> None:
    with parts.follower.reader() as reader:
        cards = {each.number: each for each in cards_of(reader, caller, turn.sources, turn.first)}
        version = reader.snapshot.version
    numbers = cited_in(turn.answer, turn.numbers)
    if any(number not in cards for number in numbers):
        raise NotVisible("no-such-document", "a source of this answer does not exist any more; ask again")
    parts.feedback.judge_answer(
        Judge.of(caller),
        turn.id,
        turn.question,
        good=verdict == "good" if verdict else None,
        model=turn.model,
        follows=turn.follows,
        cited=[_result(cards[number]) for number in numbers],
        version=version,
    )


def _result(card: SourceCard) -> JudgedResult:
    return JudgedResult(card.namespace, card.document_id, card.chunk_id)
