"""A search explained: what each side found, how both make one list, and why a candidate is no result. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from parquetry.plural import counted
from parquetry.serving.search.explanations import Candidates, SearchCandidate, Standing

MOST_DROPPED = 30
"""candidates without a place among the results that are shown"""
_DRAWN = 20
"""ranks of each side in the picture"""
_ROW, _TOP = 17, 30
"""units of the picture: height of a rank, and what is above the first"""
_LEFT, _MIDDLE, _RIGHT = 44, 180, 316
"""units from the left of the picture to its three columns"""


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """Place and score on one side."""

    rank: int
    score: float
    percent: int
    """of the best score on this side, 0 to 100"""


@dataclass(frozen=True, slots=True)
class ExplainedCandidate:
    """A passage that was considered."""

    rank: int | None
    """place among the results"""
    chunk_id: str
    document_id: str
    filename: str
    number: int | None
    """0-based number of the chunk in its document; None if it is not known"""
    vector: ScoreBar | None
    text: ScoreBar | None
    fused: ScoreBar
    match: int | None
    """percent"""
    outcome: str
    """`Result 3`, or why it was dropped"""


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """The way of a result from its rank on a side to its place."""

    x1: int
    y1: int
    x2: int
    y2: int
    number: int
    """place among the results"""
    beyond: bool
    """True if its rank on the side is below those of the picture"""


@dataclass(frozen=True, slots=True)
class DrawnDot:
    """A rank in the picture."""

    x: int
    y: int
    label: str
    result: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The sides on the left and right, the results between them."""

    height: int
    columns: tuple[tuple[int, str], ...]
    """place and name"""
    lines: tuple[DrawnLine, ...]
    dots: tuple[DrawnDot, ...]
    summary: str
    """the same in words"""


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation as a page shows it."""

    rows: tuple[ExplainedCandidate, ...]
    """results, then what was dropped"""
    left_out: int
    """further candidates that were dropped"""
    considered: int
    fused: bool
    """True if two sides make the list"""
    picture: Picture


def explained(found: Candidates) -> Explained:
    """Return an explanation for a page.

    Args:
        found: all candidates.
    """
    results = found.results
    dropped = [each for each in found.candidates if each.dropped is not None]
    shown = (*results, *dropped[:MOST_DROPPED])
    places = {each.chunk_id: each.rank for each in results}
    tops = {side: _top(getattr(each, side) for each in found.candidates) for side in ("vector", "text", "fused")}
    rows = [
        ExplainedCandidate(
            each.rank,
            each.chunk_id,
            each.document_id,
            each.filename or "Untitled",
            found.numbers.get(each.chunk_id),
            _bar(each.vector, tops["vector"]),
            _bar(each.text, tops["text"]),
            _measured(each.fused, tops["fused"]),
            None if each.relevance is None else round(each.relevance * 100),
            _outcome(each, len(results), places),
        )
        for each in shown
    ]
    sides = [side for side in ("vector", "text") if any(getattr(each, side) for each in found.candidates)]
    return Explained(
        tuple(rows),
        max(0, len(dropped) - MOST_DROPPED),
        len(found.candidates),
        len(sides) > 1,
        _picture(results, sides),
    )


def _top(standings: Iterable[Standing | None]) -> float:
    return max((each.score for each in standings if each is not None), default=0.0)


def _bar(standing: Standing | None, top: float) -> ScoreBar | None:
    return None if standing is None else _measured(standing, top)


def _measured(standing: Standing, top: float) -> ScoreBar:
    share = standing.score / top if top > 0 else 0.0
    return ScoreBar(standing.rank, standing.score, round(100 * min(1.0, max(0.0, share))))


def _outcome(each: SearchCandidate, results: int, places: Mapping[str, int | None]) -> str:
    better = places.get(each.duplicate_of or "")
    match each.dropped:
        case None:
            return f"Result {each.rank}"
        case "duplicate":
            return f"Same text as result {better}" if better else "Same text as a better one"
        case "same-document":
            return "A better passage of its document counts"
        case "beyond-candidates":
            return "Below the candidates that are looked at again"
        case "diversity":
            return "Better results say nearly the same"
        case "threshold":
            return "Its match is below the one asked for"
        case "beyond-k":
            return f"Below the {results} best"


def _picture(results: Sequence[SearchCandidate], sides: Sequence[str]) -> Picture:
    places = {"vector": (_LEFT, "Meaning"), "text": (_RIGHT, "Words")}
    ranks = [getattr(each, side).rank for each in results[:_DRAWN] for side in sides if getattr(each, side) is not None]
    # As high as what is drawn.
    bottom = _TOP + min(_DRAWN, max([len(results), *ranks])) * _ROW
    lines, dots = [], []
    alone = dict.fromkeys(sides, 0)
    for each in results[:_DRAWN]:
        place = each.rank or 0
        y = _y(place)
        dots.append(DrawnDot(_MIDDLE, y, str(place), result=True))
        on = [side for side in sides if getattr(each, side) is not None]
        for side in on:
            alone[side] += len(on) == 1
            rank, x = getattr(each, side).rank, places[side][0]
            beyond = rank > _DRAWN
            lines.append(DrawnLine(x, bottom if beyond else _y(rank), _MIDDLE, y, place, beyond))
            if not beyond:
                dots.append(DrawnDot(x, _y(rank), str(rank), result=False))
    names = {"vector": "by meaning", "text": "by words"}
    told = [f"{alone[side]} {names[side]} alone" for side in sides]
    both = len(results) - sum(alone.values())
    summary = f"{counted(len(results), 'result')}: {both} found on both sides, {' and '.join(told)}."
    if len(sides) < 2:
        summary = f"{counted(len(results), 'result')} found {names[sides[0]]}." if sides else "Nothing was found."
    columns = ((_MIDDLE, "Result"), *(places[side] for side in sides))
    return Picture(bottom + 12, columns, tuple(lines), tuple(dots), summary)


def _y(rank: int) -> int:
    return _TOP + (rank - 1) * _ROW + _ROW // 2
