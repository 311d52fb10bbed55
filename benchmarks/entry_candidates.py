"""How many statements that say the same as a new one are found by their vectors, and how many others, by threshold.

    python -m benchmarks.entry_candidates CORPORA [--embedder wordllama onnx:FOLDER]

CORPORA holds `perspectrum` and `med-monotonicity`. Of each cluster of equivalent statements one is known; the others
are asked for. Every known statement is also asked for among the others, where it is new. The threshold is chosen on the
development half; the test half tells how good it is.
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
KEPT = 0.9
"""of the recall without a threshold that the chosen one has to keep"""
KNOWN = (200, None)
"""statements in the collection: a person's or a small team's, and all of the half"""
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
        by_half = {half: _measured(found, embed) for half, found in halves.items()}
        label = name if ":" not in name else f"{name.partition(':')[0]}:{Path(name.partition(':')[2]).name}"
        measured[label] = {
            **by_half,
            "chosen": _chosen(by_half["development"]),
            "minimal_pairs": _alike(embed, minimal),
        }
        _print(label, measured[label])
    sizes = {
        half: {"statements": sum(map(len, found)), "clusters": sum(len(each) > 1 for each in found)}
        for half, found in halves.items()
    }
    result = {"conditions": conditions(PACKAGES), "limit": LIMIT, "kept": KEPT, "sets": sizes, "embedders": measured}
    print(f"written to {write_result('entry-candidates', result, options.results)}")
    return result


def _measured(found: Sequence[Sequence[str]], embed: Embed) -> dict[str, list[dict[str, float]]]:
    """Rows of figures by threshold, for collections of each size."""
    order = np.random.default_rng(0).permutation(len(found))
    vectors = embed([text for at in order for text in found[at]])
    ends = np.cumsum([len(found[at]) for at in order])
    starts = ends - [len(found[at]) for at in order]
    by_size = {}
    for size in KNOWN:
        step = min(size or len(found), len(found))
        # The last collection, which is smaller, would count for as much as the others.
        firsts = range(0, len(found) - step + 1, step)
        parts = [
            _searched(vectors, starts[first : first + step].tolist(), ends[first : first + step].tolist())
            for first in firsts
        ]
        by_size["all" if size is None else str(size)] = _rows(parts)
    return by_size


@dataclass(frozen=True, slots=True)
class _Searched:
    """The best candidates for the statements that a collection is asked for."""

    duplicates: Matrix
    """float32[asked, LIMIT]: cosines of the nearest, of statements of which the collection has an equivalent"""
    true: npt.NDArray[np.bool_]
    """bool[asked, LIMIT]: which of them are the equivalent"""
    new: Matrix
    """float32[known, LIMIT]: cosines of the nearest to each known statement among the others"""


def _searched(vectors: Matrix, starts: Sequence[int], ends: Sequence[int]) -> _Searched:
    known = vectors[starts]
    asked = [
        (row, place)
        for place, (start, end) in enumerate(zip(starts, ends, strict=True))
        for row in range(start + 1, end)
    ]
    scores = vectors[[row for row, _ in asked]] @ known.T
    nearest = np.argsort(-scores, axis=1, kind="stable")[:, :LIMIT]
    among = known @ known.T
    np.fill_diagonal(among, -1)
    return _Searched(
        np.take_along_axis(scores, nearest, axis=1),
        nearest == np.array([place for _, place in asked])[:, np.newaxis],
        -np.sort(-among, axis=1)[:, :LIMIT],
    )


def _rows(parts: Sequence[_Searched]) -> list[dict[str, float]]:
    duplicates, true, new = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("duplicates", "true", "new")
    )
    rows = []
    for threshold in (0.0, *THRESHOLDS):
        kept = duplicates >= threshold
        rows.append(
            {
                "threshold": threshold,
                "recall": round(float((kept & true).any(axis=1).mean()), 4),
                "false_candidates": round(float((kept & ~true).sum() / max(1, kept.sum())), 4),
                "new_compared": round(float((new >= threshold).any(axis=1).mean()), 4),
                "candidates_of_new": round(float((new >= threshold).sum(axis=1).mean()), 3),
            }
        )
    return rows


def _chosen(rows: dict[str, list[dict[str, float]]]) -> float:
    """The highest threshold that keeps enough of the recall in collections of every size."""
    return max(
        threshold
        for threshold in THRESHOLDS
        if all(_at(each, threshold)["recall"] >= KEPT * each[0]["recall"] for each in rows.values())
    )


def _at(rows: Sequence[dict[str, float]], threshold: float) -> dict[str, float]:
    return next(row for row in rows if row["threshold"] == threshold)


def _alike(embed: Embed, found: Sequence[Pair]) -> dict[str, Any]:
    """Shares of minimal pairs, which say the same or not, that are candidates of each other."""
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
    from knowledge.embed.registry import open_embedder
    from knowledge.sessions.candidates import unit
    from knowledge.settings import EmbeddingSettings

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


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.entry_candidates", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("corpora", type=Path, help="folder with perspectrum and med-monotonicity")
    parser.add_argument("--embedder", nargs="+", default=["wordllama"], help="as in the settings")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
