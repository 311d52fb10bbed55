"""Calibration of relevance on judged pairs, and how well it holds on questions that it was not fitted to. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from typing import Any, Literal
from zlib import crc32

import numpy as np

from parquetry.ranking.relevance import KINDS, Curve
from parquetry.ranking.relevance_fit import THRESHOLDS, Bin, Floats, calibration_error, fit_logistic, reliability

Kind = Literal["answered", "removed", "foreign"]
"""questions that the collection answers; the same with all documents that answer them left out; questions of another
collection"""
FOLDS = 5
SHOWN = 5
"""first results of a search that quality is measured on: as many as a search returns by default"""
PRIOR = 0.4
"""share of the chunks that answer, before anything is known of them: as among the first five results of a hybrid search
for questions that the development collections answer (0.35, 0.42 and 0.47)"""
_ANSWERED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A chunk found for a question, and the judgement of its document."""

    collection: str
    query: str
    """id of the question, unique within collection and kind"""
    kind: Kind
    mode: str
    """key of `KINDS`"""
    evidence: Mapping[str, float]
    """signals of the chunk"""
    relevant: bool
    """False also for a document that nobody judged"""
    rank: int
    """1-based"""

    @property
    def question(self) -> tuple[str, str]:
        """The question, whatever documents it is asked of."""
        return (self.collection, self.query)


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """Consequences of a threshold on relevance."""

    threshold: float
    kept: float
    """share of the chunks found for answered questions that answer and stay"""
    precision: float
    """share of the chunks that stay, for answered questions, that answer; 0 if none stays"""
    answered: float
    """share of the answered questions with a chunk that answers among those found, for which one stays"""
    silent: Mapping[str, float]
    """kind of unanswerable question -> share for which nothing stays"""


@dataclass(frozen=True, slots=True)
class ModeReport:
    """Quality of a calibration in one mode, over the first results of each question; collections weigh the same."""

    mode: str
    answered: int
    """answered questions"""
    unanswerable: int
    """unanswerable questions"""
    error: float
    """expected calibration error over answered questions"""
    unanswerable_relevance: Mapping[str, float]
    """kind of unanswerable question -> mean relevance of what is found, all of it error"""
    bins: tuple[Bin, ...]
    """answered questions"""
    thresholds: tuple[AtThreshold, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return asdict(self)


def curve_of(pairs: Sequence[JudgedPair], signals: Sequence[str]) -> Curve:
    """Fit a curve to pairs of one mode.

    Of unanswerable questions, those of other collections are used: without the judged documents, a collection on one
    subject still has others that nobody judged, and that may well answer. So are those of a question that it answers;
    the intercept is moved to where `PRIOR` of the chunks answer.
    """
    kinds = {pair.kind for pair in pairs}
    used = [pair for pair in pairs if pair.kind != "removed" or "foreign" not in kinds]
    matrix = np.array([[pair.evidence.get(name, 0.0) for name in signals] for pair in used], np.float64)
    answers = np.array([pair.relevant for pair in used], np.float64)
    share = weights_of(used)
    intercept, coefficients = fit_logistic(matrix, answers, share)
    rate = float(np.clip((share * answers).sum() / share.sum(), 1e-6, 1 - 1e-6))
    intercept += log(PRIOR / (1 - PRIOR)) - log(rate / (1 - rate))
    weights = {name: round(float(value), 4) for name, value in zip(signals, coefficients, strict=True) if value > 0}
    return Curve(round(intercept, 4), weights)


def curves_of(pairs: Sequence[JudgedPair]) -> dict[str, Curve]:
    """Fit the curve of each mode that the pairs are of."""
    return {mode: curve_of([pair for pair in pairs if pair.mode == mode], KINDS[mode]) for mode in modes_of(pairs)}


def modes_of(pairs: Sequence[JudgedPair]) -> list[str]:
    """Return the keys of `KINDS` that pairs are of, in its order."""
    found = {pair.mode for pair in pairs}
    return [mode for mode in KINDS if mode in found]


def weights_of(pairs: Sequence[JudgedPair]) -> Floats:
    """Return the weight of each pair.

    All collections weigh the same. Of each, half of the weight is on answered questions, and questions of a kind weigh
    the same, however many chunks were found.
    """
    found = Counter((pair.collection, pair.kind, pair.query) for pair in pairs)
    questions = Counter((collection, kind) for collection, kind, _ in found)
    kinds = Counter(collection for collection, kind in questions if kind != "answered")
    return np.array(
        [
            (_ANSWERED_SHARE if pair.kind == "answered" else (1 - _ANSWERED_SHARE) / kinds[pair.collection])
            / questions[pair.collection, pair.kind]
            / found[pair.collection, pair.kind, pair.query]
            for pair in pairs
        ]
    )


def held_out(pairs: Sequence[JudgedPair]) -> dict[str, ModeReport]:
    """Return how well calibrations hold where they were not fitted: on the collection, or the questions, left out.

    With several collections, each is left out in turn; of one, a fifth of its questions.
    """
    several = len({pair.collection for pair in pairs}) > 1
    part: Callable[[JudgedPair], Hashable] = (
        (lambda pair: pair.collection) if several else (lambda pair: crc32(pair.query.encode()) % FOLDS)
    )
    reports = {}
    for mode in modes_of(pairs):
        of_mode = [pair for pair in pairs if pair.mode == mode]
        told = np.zeros(len(of_mode))
        for left_out in sorted({part(pair) for pair in of_mode}, key=str):
            curve = curve_of([pair for pair in of_mode if part(pair) != left_out], KINDS[mode])
            for place, pair in enumerate(of_mode):
                if part(pair) == left_out:
                    told[place] = curve.relevance(pair.evidence)
        reports[mode] = report(mode, of_mode, told)
    return reports


def fitted(pairs: Sequence[JudgedPair], curves: Mapping[str, Curve]) -> dict[str, ModeReport]:
    """Return how well curves hold on pairs."""
    reports = {}
    for mode, curve in curves.items():
        of_mode = [pair for pair in pairs if pair.mode == mode]
        reports[mode] = report(mode, of_mode, np.array([curve.relevance(pair.evidence) for pair in of_mode]))
    return reports


def report(mode: str, pairs: Sequence[JudgedPair], relevance: Floats) -> ModeReport:
    """Measure the relevance of pairs of one mode."""
    first = np.array([pair.rank <= SHOWN for pair in pairs])
    shown = [pair for pair in pairs if pair.rank <= SHOWN]
    told, weights = relevance[first], weights_of(shown)
    answers = np.array([pair.relevant for pair in shown], np.float64)
    kinds = np.array([pair.kind for pair in shown])
    answered = kinds == "answered"
    nothing_answers = {
        str(kind): round(float((weights * told)[kinds == kind].sum() / weights[kinds == kind].sum()), 4)
        for kind in sorted(set(kinds) - {"answered"})
    }
    questions = {(pair.kind, *pair.question) for pair in shown}
    return ModeReport(
        mode,
        sum(kind == "answered" for kind, *_ in questions),
        sum(kind != "answered" for kind, *_ in questions),
        round(calibration_error(told[answered], answers[answered], weights[answered]), 4),
        nothing_answers,
        tuple(reliability(told[answered], answers[answered], weights[answered])),
        tuple(_at(threshold, shown, told, weights) for threshold in THRESHOLDS),
    )


def _at(threshold: float, pairs: Sequence[JudgedPair], relevance: Floats, weights: Floats) -> AtThreshold:
    stays = relevance >= threshold
    answered = np.array([pair.kind == "answered" for pair in pairs])
    answers = np.array([pair.relevant for pair in pairs])
    kept = _share(weights, stays & answers, answers)
    precision = _share(weights, stays & answers, stays & answered)
    with_answer = {pair.question for pair in pairs if pair.relevant}
    satisfied = {pair.question for pair, stay in zip(pairs, stays, strict=True) if pair.relevant and stay}
    silent: dict[str, float] = {}
    for kind in sorted({pair.kind for pair in pairs} - {"answered"}):
        asked = {pair.question for pair in pairs if pair.kind == kind}
        loud = {pair.question for pair, stay in zip(pairs, stays, strict=True) if pair.kind == kind and stay}
        silent[kind] = round(1 - _by_collection(loud, asked), 4)
    return AtThreshold(threshold, kept, precision, round(_by_collection(satisfied, with_answer), 4), silent)


def _share(weights: Floats, some: Any, of: Any) -> float:
    total = float(weights[of].sum())
    return round(float(weights[some].sum()) / total, 4) if total else 0.0


def _by_collection(some: set[tuple[str, str]], of: set[tuple[str, str]]) -> float:
    """Return the share of questions, each collection counting the same."""
    sizes = Counter(collection for collection, _ in of)
    parts = Counter(collection for collection, _ in some)
    return sum(parts[name] / size for name, size in sizes.items()) / len(sizes) if sizes else 0.0
