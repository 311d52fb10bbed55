"""Recall and cost of finding equivalent statements by their vectors, by threshold.

    python -m benchmarks.entry_candidates CORPORA [--embedder wordllama onnx:FOLDER]

CORPORA holds `perspectrum` and `med-monotonicity`. One statement of each cluster of equivalent statements is stored;
the others are queries. Every stored statement is also a query against the rest, where it is new. Thresholds, for the
cosine alone and for the cosine combined with the words shared, are chosen on the development half and evaluated on the
test half.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.conditions import RESULTS, conditions, write_result
from benchmarks.entry_sets import Pair, clusters, pairs

THRESHOLDS = tuple(round(0.30 + 0.05 * step, 2) for step in range(14))
LIMIT = 5
LOOKED_AT = 4 * LIMIT
"""candidates by cosine, of which the best with word overlap are taken"""
WORDS = (0.0, 0.2, 0.4, 0.8, 1.2)
"""weights of the share of common words"""
BARS = tuple(round(0.34 + 0.02 * step, 2) for step in range(20))
"""thresholds for the sum of cosine and weighted word share"""
KEPT = 0.9
"""minimum share of the recall without a threshold that the chosen one must keep"""
KNOWN = (200, None)
"""stored statements: an individual's or a small team's number, and the whole half"""
PACKAGES = ("parquetry", "wordllama", "onnxruntime", "numpy")
Matrix = npt.NDArray[np.float32]
Embed = Callable[[list[str]], Matrix]


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    halves = clusters(options.corpora / "perspectrum")
    minimal = pairs(options.corpora / "med-monotonicity" / "MED.tsv")
    measured: dict[str, Any] = {}
    for name in options.embedder:
        embed = _embedder(name)
        searched = {half: _searched_all(found, embed) for half, found in halves.items()}
        by_half = {half: _by_size(found, 0.0, THRESHOLDS) for half, found in searched.items()}
        with_words = {
            weight: {half: _by_size(found, weight, BARS) for half, found in searched.items()} for weight in WORDS
        }
        chosen = _chosen(by_half["development"])
        label = name if ":" not in name else f"{name.partition(':')[0]}:{Path(name.partition(':')[2]).name}"
        measured[label] = {
            **by_half,
            "chosen": chosen,
            "with_words": {
                str(weight): {
                    "chosen": (bar := _no_worse(rows["development"], by_half["development"], chosen)),
                    **{half: {size: _at(each, bar) for size, each in sizes.items()} for half, sizes in rows.items()},
                }
                for weight, rows in with_words.items()
            },
            "minimal_pairs": _alike(embed, minimal),
        }
        _print(label, measured[label])
    sizes = {
        half: {"statements": sum(map(len, found)), "clusters": sum(len(each) > 1 for each in found)}
        for half, found in halves.items()
    }
    result = {"conditions": conditions(PACKAGES), "limit": LIMIT, "kept": KEPT, "sets": sizes, "embedders": measured}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _searched_all(found: Sequence[Sequence[str]], embed: Embed) -> dict[str, list[_Searched]]:
    """Return candidates for collections of each size."""
    order = np.random.default_rng(0).permutation(len(found))
    texts = [text for at in order for text in found[at]]
    vectors = embed(texts)
    ends = np.cumsum([len(found[at]) for at in order])
    starts = ends - [len(found[at]) for at in order]
    by_size = {}
    for size in KNOWN:
        step = min(size or len(found), len(found))
        # The last collection is smaller, but would weigh as much as the others.
        firsts = range(0, len(found) - step + 1, step)
        by_size["all" if size is None else str(size)] = [
            _searched(texts, vectors, starts[first : first + step].tolist(), ends[first : first + step].tolist())
            for first in firsts
        ]
    return by_size


@dataclass(frozen=True, slots=True)
class _Searched:
    """Candidates for the statements used as queries against a collection."""

    duplicates: Matrix
    """float32[queries, LOOKED_AT, 2]: cosine and word share of the nearest, for statements with a stored equivalent"""
    true: npt.NDArray[np.bool_]
    """bool[queries, LOOKED_AT]: True for the equivalent statement"""
    new: Matrix
    """float32[stored, LOOKED_AT, 2]: the same for each stored statement against the others"""


def _searched(texts: Sequence[str], vectors: Matrix, starts: Sequence[int], ends: Sequence[int]) -> _Searched:
    known = vectors[starts]
    asked = [
        (row, place)
        for place, (start, end) in enumerate(zip(starts, ends, strict=True))
        for row in range(start + 1, end)
    ]
    rows = [row for row, _ in asked]
    scores, among = vectors[rows] @ known.T, known @ known.T
    np.fill_diagonal(among, -1)
    nearest, others = (np.argsort(-each, axis=1, kind="stable")[:, :LOOKED_AT] for each in (scores, among))
    return _Searched(
        _with_words(texts, rows, starts, scores, nearest),
        nearest == np.array([place for _, place in asked])[:, np.newaxis],
        _with_words(texts, starts, starts, among, others),
    )


def _with_words(
    texts: Sequence[str],
    asked: Sequence[int],
    known: Sequence[int],
    scores: Matrix,
    nearest: npt.NDArray[np.int64],
) -> Matrix:
    from parquetry.sessions.merge.candidates import shared_words

    shares = [
        [shared_words(texts[row], texts[known[place]]) for place in places]
        for row, places in zip(asked, nearest.tolist(), strict=True)
    ]
    cosines = np.take_along_axis(scores, nearest, axis=1)
    return np.stack([cosines, np.array(shares, np.float32).reshape(cosines.shape)], axis=2)


def _by_size(
    searched: dict[str, list[_Searched]], words: float, bars: Sequence[float]
) -> dict[str, list[dict[str, float]]]:
    """Return rows of figures by threshold, for collections of each size."""
    return {size: [_row(parts, words, bar) for bar in (0.0, *bars)] for size, parts in searched.items()}


def _row(parts: Sequence[_Searched], words: float, bar: float) -> dict[str, float]:
    from parquetry.sessions.merge.thresholds import Threshold

    floor = Threshold(bar, words).cosine if bar else -1.0

    def best(found: Matrix) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        alike = np.where(found[:, :, 0] >= floor, found[:, :, 0] + words * found[:, :, 1], -1)
        order = np.argsort(-alike, axis=1, kind="stable")[:, :LIMIT]
        return order, np.take_along_axis(alike, order, axis=1) >= bar

    kept_duplicates, true, kept_new = [], [], []
    for part in parts:
        order, kept = best(part.duplicates)
        kept_duplicates.append(kept)
        true.append(np.take_along_axis(part.true, order, axis=1))
        kept_new.append(best(part.new)[1])
    kept, is_true, new = (np.concatenate(each) for each in (kept_duplicates, true, kept_new))
    return {
        "threshold": bar,
        "recall": round(float((kept & is_true).any(axis=1).mean()), 4),
        "false_candidates": round(float((kept & ~is_true).sum() / max(1, kept.sum())), 4),
        "new_compared": round(float(new.any(axis=1).mean()), 4),
        "candidates_of_new": round(float(new.sum(axis=1).mean()), 3),
    }


def _chosen(rows: dict[str, list[dict[str, float]]]) -> float:
    """Return the highest threshold that keeps enough of the recall in collections of every size."""
    return max(
        threshold
        for threshold in THRESHOLDS
        if all(_at(each, threshold)["recall"] >= KEPT * each[0]["recall"] for each in rows.values())
    )


def _no_worse(
    rows: dict[str, list[dict[str, float]]], before: dict[str, list[dict[str, float]]], chosen: float
) -> float:
    """Return the highest threshold with at least the recall of the cosine alone, in collections of every size."""
    good = [
        bar
        for bar in BARS
        if all(_at(each, bar)["recall"] >= _at(before[size], chosen)["recall"] for size, each in rows.items())
    ]
    return max(good, default=BARS[0])


def _at(rows: Sequence[dict[str, float]], threshold: float) -> dict[str, float]:
    return next(row for row in rows if row["threshold"] == threshold)


def _alike(embed: Embed, found: Sequence[Pair]) -> dict[str, Any]:
    """Return the shares of minimal pairs, equivalent or not, that are candidates of each other."""
    cosines = (embed([pair.premise for pair in found]) * embed([pair.hypothesis for pair in found])).sum(axis=1)
    entails = np.array([pair.entails for pair in found])
    return {
        "pairs": len(found),
        "at": [
            {
                "threshold": threshold,
                "entailed": round(float((cosines[entails] >= threshold).mean()), 4),
                "others": round(float((cosines[~entails] >= threshold).mean()), 4),
            }
            for threshold in THRESHOLDS
        ],
    }


def _embedder(name: str) -> Embed:
    from parquetry.embed.registry import open_embedder
    from parquetry.sessions.merge.candidates import unit
    from parquetry.settings.embedding import EmbeddingSettings

    embedder = open_embedder(name, EmbeddingSettings())
    return lambda texts: unit(embedder.embed(texts).vectors)


def _print(label: str, measured: dict[str, Any]) -> None:
    print(f"{label}: threshold {measured['chosen']}")
    for half in ("development", "test"):
        for size, rows in measured[half].items():
            print(f"  {half}, {size} known: recall@{LIMIT}, false among candidates, new ones compared")
            for row in rows:
                figures = (row["recall"], row["false_candidates"], row["new_compared"])
                print(f"    {row['threshold']:.2f}", "  ".join(f"{figure:.3f}" for figure in figures))
    for weight, row in measured["with_words"].items():
        print(f"  with {weight} of the words from {row['chosen']} on:", row["development"], row["test"])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.entry_candidates", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("corpora", type=Path, help="folder with perspectrum and med-monotonicity")
    parser.add_argument("--embedder", nargs="+", default=["wordllama"], help="as in the settings")
    parser.add_argument("--name", default="entry-candidates", help="of the file of results")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
