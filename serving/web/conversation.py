"""A chat as its page keeps it: questions, answers and their sources, in a field of the form. Pure.

Nothing of a chat is kept by the service. What comes back from a page is its visitor's own word: it is bounded, shown as
text, and its sources are looked up again for the caller.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

MOST_TURNS = 20
"""turns that a page keeps; older ones are dropped"""
MOST_STATE = 400_000
"""characters of the field"""
HISTORY_TURNS, HISTORY_CHARACTERS = 6, 16_000
"""earlier turns, and their characters, that go to the model with a question"""
LONGEST_QUESTION = 8192
_MOST_SOURCES = 60
_LONGEST_ANSWER = 100_000
_LONGEST_NAME = 255
Verdict = Literal["good", "bad", ""]
SourcePlace = tuple[str, int | None]
"""document and 0-based number of its chunk; None for a whole document"""


@dataclass(frozen=True, slots=True)
class AnsweredTurn:
    """A question and its answer."""

    id: str
    question: str
    answer: str
    model: str
    """agent or model that was asked"""
    first: int
    """number of the first source: numbers go on over all turns"""
    sources: tuple[SourcePlace, ...]
    follows: bool = False
    """True if earlier turns went to the model, too"""
    verdict: Verdict = ""

    @property
    def numbers(self) -> range:
        """Numbers of the sources."""
        return range(self.first, self.first + len(self.sources))


def next_number(turns: Sequence[AnsweredTurn]) -> int:
    """Return the number of the first source of a further turn."""
    return max((turn.numbers.stop for turn in turns), default=1)


def numbers(turns: Sequence[AnsweredTurn]) -> frozenset[int]:
    """Return the numbers of all sources."""
    return frozenset(number for turn in turns for number in turn.numbers)


def history(turns: Sequence[AnsweredTurn]) -> list[dict[str, str]]:
    """Return the messages of earlier turns that go to the model, the newest that fit, in order."""
    left, found = HISTORY_CHARACTERS, list[AnsweredTurn]()
    for turn in reversed(turns[-HISTORY_TURNS:]):
        left -= len(turn.question) + len(turn.answer)
        if left < 0:
            break
        found.append(turn)
    return [
        message
        for turn in reversed(found)
        for message in ({"role": "user", "content": turn.question}, {"role": "assistant", "content": turn.answer})
    ]


def with_turn(turns: Sequence[AnsweredTurn], turn: AnsweredTurn) -> list[AnsweredTurn]:
    """Return a chat with one turn more, without the oldest ones that do not fit."""
    kept = [*turns, turn][-MOST_TURNS:]
    while len(kept) > 1 and len(encoded(kept)) > MOST_STATE:
        kept = kept[1:]
    return kept


def judged(turn: AnsweredTurn, verdict: Verdict) -> AnsweredTurn:
    """Return a turn with a judgement."""
    return replace(turn, verdict=verdict)


def encoded(turns: Sequence[AnsweredTurn]) -> str:
    """Return a chat as the field of a form."""
    return json.dumps(
        [
            [
                *(turn.id, turn.question, turn.answer, turn.model, turn.first),
                *([list(each) for each in turn.sources], turn.follows, turn.verdict),
            ]
            for turn in turns
        ],
        separators=(",", ":"),
    )


def decoded(field: str) -> list[AnsweredTurn]:
    """Return the chat in a field of a form.

    Raises:
        ValueError: it is none.
    """
    if not field:
        return []
    if len(field) > 2 * MOST_STATE:
        raise ValueError("too long")
    try:
        given = json.loads(field)
    except RecursionError:
        raise ValueError("nested") from None
    if not isinstance(given, list) or len(given) > MOST_TURNS:
        raise ValueError("no list of turns")
    return [_turn(each) for each in given]


def _turn(given: Any) -> AnsweredTurn:
    match given:
        case [str(id_), str(question), str(answer), str(model), int(first), list(sources), bool(follows), str(verdict)]:
            fits = (
                len(question) <= LONGEST_QUESTION and len(answer) <= _LONGEST_ANSWER and len(sources) <= _MOST_SOURCES
            )
            named = id_.isalnum() and len(id_) <= _LONGEST_NAME and len(model) <= _LONGEST_NAME
            if fits and named and 1 <= first < 100_000 and verdict in ("good", "bad", ""):
                known: Verdict = "good" if verdict == "good" else "bad" if verdict == "bad" else ""
                places = tuple(_place(each) for each in sources)
                return AnsweredTurn(id_, question, answer, model, first, places, follows, known)
    raise ValueError("no turn")


def _place(given: Any) -> SourcePlace:
    match given:
        case [str(document), int(chunk)] if len(document) <= _LONGEST_NAME and 0 <= chunk < 2**31:
            return (document, chunk)
        case [str(document), None] if len(document) <= _LONGEST_NAME:
            return (document, None)
    raise ValueError("no source")
