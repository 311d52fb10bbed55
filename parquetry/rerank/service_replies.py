"""Replies of rerank services: their scores, checked and on one scale, and what they bill. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.embed.checks import in_order
from parquetry.errors import ServiceRefused, TransientError
from parquetry.llm.calls import BAD_REPLY
from parquetry.masking import excerpt
from parquetry.rerank.base import Scores
from parquetry.settings.rerank import ScoreScale

SEARCH_TEXTS = 100
"""texts of one search, as services that charge by the search count them"""
_ROUNDING = 0.001
"""by how much a score may pass its scale, as those of 16-bit models do"""
_DIGITS = 15
"""digits of a count at most"""


@dataclass(frozen=True, slots=True)
class Billed:
    """Usage of one request."""

    tokens: int
    searches: int


def parsed(content: bytes, url: str) -> Any:
    """Return the JSON of a reply.

    Raises:
        TransientError: `bad-reply`, it is none.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TransientError(BAD_REPLY, f"{url} answered what is no JSON: {error}") from error


def scores_of(reply: Any, expected: int, url: str) -> npt.NDArray[np.float64]:
    """Return float64[expected], the scores in the order of the texts, as they stand in the reply.

    Args:
        reply: `{"results": [{"index": 0, "relevance_score": 0.9}, ...]}`, or under `data` as by Voyage, or the list
            alone, with `score`, as by TEI.
        expected: number of texts sent.
        url: address of the service, for messages.

    Raises:
        TransientError: `bad-reply`, scores are missing, duplicated or not numbers.
    """
    found = reply.get("results", reply.get("data")) if isinstance(reply, dict) else reply
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TransientError(BAD_REPLY, f"{url} sent no results but {excerpt(str(reply), 200)!r}")
    places = in_order([_index(each.get("index")) for each in found], expected, "the rerank service", "scores")
    given = [each.get("relevance_score", each.get("score")) for each in found]
    numbers = [_number(each) for each in given]
    for value, number in zip(given, numbers, strict=True):
        if not math.isfinite(number):
            raise TransientError(BAD_REPLY, f"{url} sent a score that is no number: {excerpt(repr(value), 80)}")
    ordered: npt.NDArray[np.float64] = np.array(numbers, np.float64)[places]
    return ordered


def scaled(scores: npt.NDArray[np.float64], scale: ScoreScale, url: str) -> Scores:
    """Return scores of a scale as a reranker gives them.

    Raises:
        ServiceRefused: a score is outside the scale.
    """
    if scale == "logit":
        return np.exp(-np.logaddexp(0, -scores)).astype(np.float32)
    least = 0 if scale == "probability" else -1
    outside = scores[(scores < least - _ROUNDING) | (scores > 1 + _ROUNDING)]
    if len(outside):
        others = '"logit", or "cosine" for -1 to 1' if scale == "probability" else '"logit"'
        raise ServiceRefused(
            f"{url} gave the score {outside[0]:g}, and rerank.scores says {least} to 1; set scores in [rerank] to "
            f"{others}, as the model has it"
        )
    return np.clip(scores, least, 1).astype(np.float32)


def billed(reply: Any, headers: Mapping[str, str], texts: int, expected: int) -> Billed:
    """Return what a service reports that a request took, and an estimate of what it does not report.

    Args:
        reply: the reply.
        headers: its headers, by lower-case name.
        texts: number of texts sent.
        expected: tokens, as estimated.
    """
    tokens = _first_count(
        _at(reply, "usage", "total_tokens"),
        _at(reply, "meta", "tokens", "input_tokens"),
        _at(reply, "meta", "billed_units", "total_tokens"),
        _at(reply, "meta", "billed_units", "input_tokens"),
        headers.get("x-compute-tokens"),
    )
    searches = _first_count(_at(reply, "meta", "billed_units", "search_units"))
    return Billed(
        expected if tokens is None else tokens,
        math.ceil(texts / SEARCH_TEXTS) if searches is None else searches,
    )


def _index(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _number(value: Any) -> float:
    """Return a number of JSON; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _at(reply: Any, *path: str) -> Any:
    """Return the value at a path of keys; None if there is none."""
    for key in path:
        reply = reply.get(key) if isinstance(reply, dict) else None
    return reply


def _first_count(*values: Any) -> int | None:
    """Return the first value that is a count, in JSON or in a header."""
    for value in values:
        is_text = isinstance(value, str) and value.isdecimal() and len(value) < _DIGITS
        number = _number(int(value) if is_text else value)
        if 0 <= number < 10**_DIGITS:
            return math.ceil(number)
    return None
