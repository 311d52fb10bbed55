"""Rejection of statements without support in their evidence, for true, made-up and altered statements.

python -m benchmarks.entry_support CORPORA

Four kinds of statements with evidence, each in two halves; the threshold is chosen on the first and reported for both:

- `paraphrase` (true): statements of PERSPECTRUM that its annotators consider equivalent, as people rephrase them, in a
  message between sentences about something else. Freer than the output of a model instructed to keep the wording.
- `entailed` (true): MED, pairs in which the premise entails the hypothesis.
- `unrelated` (made up): self-descriptions from other dialogues of Synthetic-Persona-Chat, with a whole dialogue as
  evidence. Some are true of this dialogue by chance, most often about dogs; they count as made up.
- `changed` (made up): true sentences with another number or name.

Cases that cannot be rejected are reported, too: `neutral`, sentences of MED that differ in a few words and are not
entailed.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conditions import RESULTS, conditions, write_result
from benchmarks.entry_sets import Half, clusters, pairs
from parquetry.sessions.distill.passages import passage
from parquetry.sessions.distill.support import SUPPORT, inexact, nearness, support
from parquetry.sessions.facts import facts

PACKAGES = ("parquetry", "wordllama", "numpy")
THRESHOLDS = [round(each / 100, 2) for each in range(20, 71, 5)]
TRUE, MADE_UP = ("paraphrase", "entailed"), ("unrelated", "changed")
REFUSED = 0.95
"""minimum share of the unrelated statements that the threshold has to reject"""
DAY = datetime(2026, 3, 1, tzinfo=UTC)
HALVES: tuple[Half, Half] = ("development", "test")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


@dataclass(frozen=True, slots=True)
class Case:
    """A statement and its evidence."""

    statement: str
    evidence: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    found = {half: cases(options.corpora, half, options.most) for half in HALVES}
    measured = {half: _curve(found[half]) for half in HALVES}
    result = {
        "conditions": conditions(PACKAGES),
        "cases": {half: {kind: len(each) for kind, each in found[half].items()} for half in HALVES},
        "chosen": _chosen(measured["development"]),
        "in_use": SUPPORT,
        "shares_that_pass": measured,
    }
    print(f"threshold {result['chosen']} chosen, {SUPPORT} in use; shares that pass")
    for half in HALVES:
        for row in measured[half]:
            print(f"  {half}", "  ".join(f"{name} {value:.3f}" for name, value in row.items()))
    print(f"written to {write_result('entry-support', result, options.results)}")
    return result


def cases(corpora: Path, half: Half, most: int) -> dict[str, list[Case]]:
    """Return statements of a half by kind, a random sample of at most `most` each."""
    chance = random.Random(half)
    groups = clusters(corpora / "perspectrum")[half]
    others = [text for group in groups for text in group]
    paraphrases = [(group[0], group[1]) for group in groups if len(group) > 1]
    med = pairs(corpora / "med-monotonicity" / "MED.tsv")
    chance.shuffle(paraphrases)
    of_half = [pair for number, pair in enumerate(med) if (number % 2 == 0) == (half == "development")]
    chance.shuffle(of_half)
    entailed = [Case(pair.hypothesis, (pair.premise,)) for pair in of_half if pair.entails]
    return {
        "paraphrase": [
            Case(one, (". ".join([chance.choice(others), other, chance.choice(others)]),))
            for one, other in paraphrases[:most]
        ],
        "entailed": entailed[:most],
        "unrelated": _unrelated(corpora, half, chance, most),
        "changed": _changed([each.statement for each in entailed] + others, chance)[:most],
        "neutral": [Case(pair.hypothesis, (pair.premise,)) for pair in of_half if not pair.entails][:most],
    }


def _unrelated(corpora: Path, half: Half, chance: random.Random, most: int) -> list[Case]:
    file = corpora / "synthetic-persona-chat" / "data" / "Synthetic-Persona-Chat_valid.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    rows = rows[::2] if half == "development" else rows[1::2]
    chance.shuffle(rows)
    found = []
    for row, other in itertools.pairwise(rows):
        said = tuple(line.partition(": ")[2] for line in row["Best Generated Conversation"].splitlines() if line)
        told = [line.strip() for line in other["user 1 personas"].splitlines() if line.strip()]
        found += [Case(statement, said) for statement in told]
        if len(found) >= most:
            break
    return found[:most]


def _changed(sentences: Sequence[str], chance: random.Random) -> list[Case]:
    """Alter sentences by a raised number or another name; the evidence is the original."""
    names = sorted({name for text in sentences for name in facts(text).names if name.isalpha() and len(name) > 2})
    changed = []
    for text in sentences:
        own = facts(text)
        if number := _NUMBER.search(text):
            other = f"{text[: number.start()]}{int(number[0]) + chance.randint(2, 9)}{text[number.end() :]}"
            changed.append(Case(other, (text,)))
        elif own.names and (old := min(own.names)).isalpha():
            new = chance.choice(names).title()
            other = re.sub(rf"(?i)(?<!\w){re.escape(old)}(?!\w)", new, text)
            if other != text and new.casefold() not in text.casefold():
                changed.append(Case(other, (text,)))
    chance.shuffle(changed)
    return changed


def _curve(found: dict[str, list[Case]]) -> list[dict[str, float]]:
    """Return the shares that pass, by threshold."""
    scores = {kind: np.array([_score(case) for case in each]) for kind, each in found.items()}
    return [
        {"threshold": threshold, **{kind: round(float((each >= threshold).mean()), 4) for kind, each in scores.items()}}
        for threshold in THRESHOLDS
    ]


def _score(case: Case) -> float:
    """Return the highest threshold that a case passes; below 0 if an exact fact is missing."""
    one, there = facts(case.statement), [passage(text) for text in case.evidence]
    if inexact(one, there, case.evidence, DAY):
        return -1.0
    return support(*nearness(one, there))


def _chosen(rows: Sequence[dict[str, float]]) -> float:
    """Return the lowest threshold that rejects enough of the unrelated statements."""
    return next(row["threshold"] for row in rows if 1 - row["unrelated"] >= REFUSED)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.entry_support", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("corpora", type=Path, help="with perspectrum, med-monotonicity and synthetic-persona-chat")
    parser.add_argument("--most", type=int, default=800, help="cases of each kind in a half")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
