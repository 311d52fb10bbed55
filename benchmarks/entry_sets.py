"""Statements with known equivalence: PERSPECTRUM and MED.

Sources: Chen et al., Seeing Things from a Different Angle, NAACL 2019; Yanaka et al., Can Neural Networks Understand
Monotonicity Reasoning?, BlackboxNLP 2019.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Half = Literal["development", "test"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences that differ in a few words."""

    premise: str
    hypothesis: str
    entails: bool
    """True if the premise entails the hypothesis"""
    phenomena: tuple[str, ...]


def clusters(folder: Path) -> dict[Half, list[list[str]]]:
    """Read the statements of PERSPECTRUM in clusters that its annotators consider equivalent.

    Args:
        folder: folder with the files of the data set.

    Returns:
        Clusters by half: training claims for development, the others for the test. Clusters that share a statement
        are joined; test clusters that share one with the other half are left out.
    """
    pool = {each["pId"]: " ".join(each["text"].split()) for each in _json(folder / "perspective_pool_v1.0.json")}
    split = _json(folder / "dataset_split_v1.0.json")
    groups: dict[Half, list[set[str]]] = {"development": [], "test": []}
    for claim in _json(folder / "perspectrum_with_answers_v1.0.json"):
        half: Half = "development" if split[str(claim["cId"])] == "train" else "test"
        groups[half] += [{pool[each] for each in cluster["pids"]} for cluster in claim["perspectives"]]
    development = _joined(groups["development"])
    seen = {text for cluster in development for text in cluster}
    return {
        "development": development,
        "test": [cluster for cluster in _joined(groups["test"]) if not seen.intersection(cluster)],
    }


def pairs(file: Path) -> list[Pair]:
    """Read the pairs of MED in file order."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            Pair(
                row["sentence1"],
                row["sentence2"],
                row["gold_label"] == "entailment",
                tuple(row["genre"].split(":")[2:]),
            )
            for row in rows
        ]


def _joined(groups: list[set[str]]) -> list[list[str]]:
    """Join groups with a common member, in a stable order."""
    parent: dict[str, str] = {}

    def root(text: str) -> str:
        while parent.setdefault(text, text) != text:
            text = parent[text]
        return text

    for group in groups:
        first, *others = sorted(group)
        root(first)
        for other in others:
            parent[root(other)] = root(first)
    joined: dict[str, list[str]] = {}
    for text in sorted(parent):
        joined.setdefault(root(text), []).append(text)
    return list(joined.values())


def _json(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))
