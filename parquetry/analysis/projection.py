"""A map of documents: their vectors in two dimensions, with neighbours kept together, and clusters of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from parquetry.analysis.similar_vectors import Check, no_check
from parquetry.errors import SettingsError
from parquetry.threads import threads_of

LANDMARKS = 3_000
"""documents whose places are computed; the others stand between the nearest of these"""
_KEPT = 50
"""dimensions that are kept before places are computed"""
_ITERATIONS = 500
"""of t-SNE; twice as many take twice as long, and keep no more neighbours"""
_NEAREST = 5
"""landmarks between which a document stands"""
_BLOCK = 2_000
"""documents whose distances to the landmarks are computed at a time"""
_MOST_CLUSTERS = 24
_SEED = 0
_LOOK_SECONDS = 0.25
"""seconds between two checks while scikit-learn computes"""

Result = TypeVar("Result")
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Labels = np.ndarray[tuple[int], np.dtype[np.int32]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def project(vectors: Matrix, check: Check = no_check) -> Matrix:
    """Return a place in the unit square for each vector; like vectors stand together, and the same ones always there.

    Above `LANDMARKS` vectors, so many of them are placed by t-SNE, after their 50 main components, and the others by
    their nearest five landmarks. docs/decisions/0105-analysis-of-large-corpora.md has the figures.

    Args:
        vectors: float32[n, dimensions], L2-normalised.
        check: called between steps, and several times a second while places are computed; raises to end it.

    Returns:
        float32[n, 2], 0 to 1.

    Raises:
        SettingsError: the extra `map` is not installed.
    """
    count = len(vectors)
    if count < 4:
        return np.array([[(each + 1) / (count + 1), 0.5] for each in range(count)], np.float32).reshape(count, 2)
    manifold = _scikit_learn("manifold")
    reduced = _main_components(vectors)
    chosen = np.arange(count)
    if count > LANDMARKS:
        chosen = np.sort(np.random.default_rng(_SEED).choice(count, LANDMARKS, replace=False))
    known = reduced[chosen]
    spread = float(known[:, 0].std()) or 1.0
    model = manifold.TSNE(
        n_components=2,
        perplexity=min(30.0, (len(chosen) - 1) / 3),
        init=np.ascontiguousarray(_two(known) / spread * 1e-4),
        random_state=_SEED,
        max_iter=_ITERATIONS,
    )
    places = np.asarray(_computed(lambda: model.fit_transform(known), check), np.float32)
    return _in_unit_square(places if count == len(chosen) else _between(reduced, known, places, check))


def add_places(vectors: Matrix, places: Matrix, check: Check = no_check) -> Matrix:
    """Return places in which those without one stand between the nearest of those that have one.

    Args:
        vectors: as in `project`.
        places: float32[n, 2]; NaN where there is none yet; one at least is there.
        check: as in `project`.
    """
    has_place = ~np.isnan(places[:, 0])
    known = np.flatnonzero(has_place)
    if len(known) > LANDMARKS:
        known = np.sort(np.random.default_rng(_SEED).choice(known, LANDMARKS, replace=False))
    found = places.copy()
    if not has_place.all():
        reduced = _main_components(vectors)
        found[~has_place] = _between(reduced[~has_place], reduced[known], places[known], check)
    return found


def clusters(vectors: Matrix, check: Check = no_check) -> Labels:
    """Return the number of the cluster of each vector, 0-based, the largest cluster first.

    Args:
        vectors: as in `project`.
        check: as in `project`.

    Raises:
        SettingsError: the extra `map` is not installed.
    """
    count = len(vectors)
    number = min(_MOST_CLUSTERS, round((count / 2) ** 0.5))
    if number < 2:
        return np.zeros(count, np.int32)
    cluster = _scikit_learn("cluster")
    model = cluster.MiniBatchKMeans(number, n_init=3, random_state=_SEED, batch_size=2048)
    labels = np.asarray(_computed(lambda: model.fit_predict(_main_components(vectors)), check))
    largest_first = np.argsort(-np.bincount(labels, minlength=number), kind="stable")
    rank = np.empty(number, np.int32)
    rank[largest_first] = np.arange(number, dtype=np.int32)
    ranked: Labels = rank[labels]
    return ranked


def add_to_clusters(vectors: Matrix, labels: Labels) -> Labels:
    """Return clusters in which those without one are in that with the nearest centre.

    Args:
        vectors: as in `project`.
        labels: int32[n], -1 where there is none yet; one at least is there.
    """
    numbers = np.unique(labels[labels >= 0])
    centres = np.stack([vectors[labels == number].mean(axis=0) for number in numbers])
    missing = np.flatnonzero(labels < 0)
    distances = (centres**2).sum(axis=1) - 2 * vectors[missing] @ centres.T
    found = labels.copy()
    found[missing] = numbers[distances.argmin(axis=1)]
    return found


def _scikit_learn(module: str) -> Any:
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        raise SettingsError("a map needs the extra map: pip install 'parquetry[map]'") from error


def _computed(function: Callable[[], Result], check: Check) -> Result:
    """Return the result of a function that cannot be interrupted; when the check raises, it ends by itself later."""
    if check is no_check:
        return function()
    with threads_of(1, "map") as threads:
        future = threads.submit(function)
        while not future.done():
            check()
            wait([future], _LOOK_SECONDS)
        return future.result()


def _main_components(vectors: Matrix) -> Matrix:
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    kept: Matrix = np.ascontiguousarray(centred @ directions[:, ::-1][:, :_KEPT].astype(np.float32))
    return kept


def _two(reduced: Matrix) -> Matrix:
    """Return the first two dimensions; of vectors with one, a second of zeros."""
    found: Matrix = np.zeros((len(reduced), 2), np.float32)
    found[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    return found


def _between(reduced: Matrix, known: Matrix, places: Matrix, check: Check) -> Matrix:
    """Return a place for each vector between those of its nearest landmarks, nearer ones counting more."""
    found: Matrix = np.empty((len(reduced), 2), np.float32)
    squares = (known**2).sum(axis=1)
    among = min(_NEAREST, len(known) - 1)
    for start in range(0, len(reduced), _BLOCK):
        check()
        block = reduced[start : start + _BLOCK]
        distances = (block**2).sum(axis=1)[:, None] - 2 * block @ known.T + squares
        nearest = np.argpartition(distances, among, axis=1)[:, : max(1, among)]
        weights = 1 / np.maximum(np.take_along_axis(distances, nearest, axis=1), 1e-9)
        weights /= weights.sum(axis=1, keepdims=True)
        found[start : start + _BLOCK] = (places[nearest] * weights[:, :, None]).sum(axis=1)
    return found


def _in_unit_square(places: Matrix) -> Matrix:
    least, most = places.min(axis=0), places.max(axis=0)
    extent = np.maximum(most - least, 1e-9)
    scaled: Matrix = ((places - least) / extent).astype(np.float32)
    return scaled
