"""Fit of a calibration to judged pairs, and measures of how well relevance keeps its word. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
BINS = 10
THRESHOLDS = (0.3, 0.5, 0.7)
_RIDGE = 1e-3
_STEPS = 50
_CLOSE = 1e-9


def fit_logistic(signals: Floats, answers: Floats, weights: Floats) -> tuple[float, Floats]:
    """Fit a logistic regression whose coefficients are not negative: more evidence never lowers the result.

    Args:
        signals: float64[n, signals].
        answers: float64[n], 1 for a chunk that answers, else 0.
        weights: float64[n], weight of each pair.

    Returns:
        Intercept, and one coefficient per signal; a signal that would have a negative one has 0.
    """
    used = list(range(signals.shape[1]))
    while True:
        found = _newton(np.column_stack([np.ones(len(signals)), signals[:, used]]), answers, weights)
        lowest = int(np.argmin(found[1:])) if used else -1
        if not used or found[1 + lowest] >= 0:
            coefficients = np.zeros(signals.shape[1])
            coefficients[used] = found[1:]
            return float(found[0]), coefficients
        del used[lowest]


def _newton(design: Floats, answers: Floats, weights: Floats) -> Floats:
    """Return the coefficients of a logistic regression with a small ridge, by Newton's method."""
    weights = weights / weights.mean()
    ridge = _RIDGE * np.eye(design.shape[1])
    ridge[0, 0] = 0.0
    found = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        predicted = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        gradient = design.T @ (weights * (answers - predicted)) / len(design) - ridge @ found
        curvature = (design * (weights * predicted * (1 - predicted))[:, None]).T @ design / len(design)
        step = np.linalg.solve(curvature + ridge + 1e-9 * np.eye(len(found)), gradient)
        found = found + step
        if np.abs(step).max() < _CLOSE:
            break
    return found


@dataclass(frozen=True, slots=True)
class Bin:
    """Pairs with about the same relevance."""

    low: float
    high: float
    count: int
    predicted: float
    """mean relevance"""
    observed: float
    """share of the chunks that answer"""


def reliability(relevance: Floats, answers: Floats, weights: Floats) -> list[Bin]:
    """Return the bins of equal width that hold any pairs."""
    place = np.minimum((relevance * BINS).astype(int), BINS - 1)
    bins = []
    for number in range(BINS):
        inside = place == number
        total = float(weights[inside].sum())
        if total > 0:
            predicted = float((weights * relevance)[inside].sum() / total)
            observed = float((weights * answers)[inside].sum() / total)
            bins.append(Bin(number / BINS, (number + 1) / BINS, int(inside.sum()), predicted, observed))
    return bins


def calibration_error(relevance: Floats, answers: Floats, weights: Floats) -> float:
    """Return the expected calibration error: the mean difference of predicted and observed over the bins, weighted."""
    place = np.minimum((relevance * BINS).astype(int), BINS - 1)
    apart = sum(abs(float((weights * (relevance - answers))[place == number].sum())) for number in range(BINS))
    return apart / float(weights.sum())
