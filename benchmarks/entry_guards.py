"""Precision of the guards: judgements that change a number, negation or name must be stopped, harmless ones must pass.

    python -m benchmarks.entry_guards CORPORA [--half test]

CORPORA holds `perspectrum` and `med-monotonicity`. Statements of PERSPECTRUM are changed by rule: in one fact, which
makes them different statements, or in their spelling only. Pairs of MED are classified by their difference: a number, a
negation or a name. Rules are developed on the development half and evaluated on the test half.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, conditions, write_result
from benchmarks.entry_sets import Half, clusters, pairs
from parquetry.sessions.cue_words import MULTIPLIERS, NEGATIONS, NUMBER_WORDS
from parquetry.sessions.merge.guards import objection_to_existing, objection_to_merge

PACKAGES = ("parquetry", "PyStemmer")
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|could|should|would|will|must|does|do|has|have)\b(?! not\b|n't)")
_DENIAL = re.compile(r"\b(?:not|never) ")
_NUMBER = re.compile(r"\d|\b(?:" + "|".join((*NUMBER_WORDS, *MULTIPLIERS)) + r")\b", re.IGNORECASE)

INSERTED = {
    "number": [
        ("for 30 days", "for 31 days"),
        ("for three years", "for five years"),
        ("by 5%", "by 50%"),
        ("up to 1,200 times", "up to 12,000 times"),
        ("within 5 minutes", "within 5 hours"),
        ("at least twice a week", "at least once a week"),
    ],
    "date": [
        ("since 5 March 2024", "since 15 March 2024"),
        ("until 2025-01-31", "until 2025-03-31"),
        ("every Monday", "every Tuesday"),
        ("at 2:30 pm", "at 2:30 am"),
        ("weekly", "monthly"),
    ],
    "identifier": [
        ("according to SR-2023-052", "according to SR-2023-053"),
        ("as of version 3.10", "as of version 3.1"),
        ("(see /etc/hosts)", "(see /etc/host)"),
        ("with --force", "with --force-with-lease"),
        ("because of CVE-2021-44228", "because of CVE-2021-45046"),
        ("in config_dev.yaml", "in config_prod.yaml"),
    ],
    "name": [
        ("in Berlin", "in Paris"),
        ("according to Alice", "according to Bob"),
        ("for the ACME team", "for the Initech team"),
        ("with DuckDB", "with SQLite"),
        ('under the title "first light"', 'under the title "last light"'),
        ("in Python", "in Rust"),
    ],
}
"""pairs of suffixes that make two different statements"""
PEOPLE = [("Alice", "Bob"), ("Müller", "Meier"), ("DuckDB", "SQLite"), ("Marketing", "Sales"), ("Hamburg", "Boston")]
"""pairs of prefixes that make two different statements"""
REWRITTEN = [
    ("for 30 days", "for thirty days"),
    ("for three years", "for 3 years"),
    ("by 5%", "by 5 percent"),
    ("up to 1,200 times", "up to 1200 times"),
    ("since 5 March 2024", "since March 5, 2024"),
    ("since 2024-03-05", "since the 5th of March 2024"),
    ("at 2:30 pm", "at 14:30"),
    ("in `config_dev.yaml`", "in config_dev.yaml"),
    ("with the ACME API", "with ACME's API"),
    ("every Monday", "on Mondays"),
]
"""pairs of suffixes that say the same in different spellings"""


@dataclass(frozen=True, slots=True)
class Case:
    """A draft that the language model judged equal to a known entry, and the correct verdict."""

    kind: str
    draft: str
    entry: str
    same: bool


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    found = clusters(options.corpora / "perspectrum")[options.half]
    statements = [cluster[0].rstrip(" .") for cluster in found][: options.statements]
    cases = [*_changed(statements), *_rewritten(statements)]
    minimal = list(_minimal(options.corpora / "med-monotonicity" / "MED.tsv"))
    result = {
        "conditions": conditions(PACKAGES),
        "half": options.half,
        "statements": len(statements),
        "generated": {"existing": _table(cases, _existing), "merged": _table(cases, _merged)},
        "med": _table(minimal, _existing),
        "paraphrases": _paraphrases(found),
        "put_together": _put_together(found),
    }
    for name in ("existing", "merged"):
        _print(f"generated, {name}", result["generated"][name])
    _print("MED, existing", result["med"])
    for name in ("paraphrases", "put_together"):
        print(name, result[name])
    print(f"written to {write_result('entry-guards', result, options.results)}")
    return result


def _changed(statements: Sequence[str]) -> Iterator[Case]:
    """Yield statements that differ in one fact."""
    for at, text in enumerate(statements):
        for kind, insertions in INSERTED.items():
            one, other = insertions[at % len(insertions)]
            yield Case(kind, f"{text} {one}", f"{text} {other}", same=False)
        one, other = PEOPLE[at % len(PEOPLE)]
        yield Case("name first", f"{one} thinks: {text}", f"{other} thinks: {text}", same=False)
        if denial := _DENIAL.search(text):
            yield Case("negation", text, text[: denial.start()] + text[denial.end() :], same=False)
        elif auxiliary := _AUXILIARY.search(text):
            yield Case("negation", text, f"{text[: auxiliary.end()]} not{text[auxiliary.end() :]}", same=False)
        if re.search(r"\d", text):
            yield Case("number", text, re.sub(r"\d+", lambda match: str(int(match[0]) + 1), text, count=1), same=False)


def _rewritten(statements: Sequence[str]) -> Iterator[Case]:
    """Yield statements that differ in their spelling only."""
    for at, text in enumerate(statements):
        one, other = REWRITTEN[at % len(REWRITTEN)]
        yield Case("rewritten", f"{text} {one}", f"{text} {other}", same=True)
        yield Case("rewritten", f"{text} {other}.", f"{text} {one}", same=True)
        first = text[0] if text[:2].isupper() else text[0].swapcase()
        yield Case("unchanged", text, f"{first}{text[1:]}.", same=True)
        if "not " in text:
            yield Case(
                "contracted", text, re.sub(r"\b(is|are|do|does|should|would|could) not\b", r"\1n't", text), same=True
            )


def _minimal(file: Path) -> Iterator[Case]:
    """Yield pairs of MED classified by their difference: the hypothesis is the draft, the premise the known entry."""
    denials = NEGATIONS["english"]
    for pair in pairs(file):
        old, new = pair.premise.rstrip(".").split(), pair.hypothesis.rstrip(".").split()
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        lost = [word for tag, a, b, _, _ in blocks if tag != "equal" for word in old[a:b]]
        gained = [word for tag, _, _, a, b in blocks if tag != "equal" for word in new[a:b]]
        kind = "other"
        if any(_NUMBER.search(word) for word in gained):
            kind = "number"
        elif any((word.casefold() in denials) for word in gained) != any((word.casefold() in denials) for word in lost):
            kind = "negation"
        elif any(word[0].isupper() and word not in ("I", new[0]) for word in gained):
            kind = "name"
        yield Case(kind, pair.hypothesis, pair.premise, same=pair.entails)


def _existing(case: Case) -> str | None:
    objection = objection_to_existing(case.draft, case.entry)
    return objection.reason if objection else None


def _merged(case: Case) -> str | None:
    """Return None if the guard passes a merge that keeps either statement for both, else `both`."""
    both = [case.draft, case.entry]
    objections = [objection_to_merge(both, text) for text in both]
    return None if None in objections else "both"


def _table(cases: Iterable[Case], judge: Callable[[Case], str | None]) -> dict[str, dict[str, Any]]:
    """Count, by kind and in total, the cases stopped rightly and wrongly, and their objections."""
    stopped: dict[str, list[list[str | None]]] = defaultdict(lambda: [[], []])
    for case in cases:
        stopped[case.kind][case.same].append(judge(case))
    rows = {}
    for kind, (different, same) in {**stopped, "all": _all(stopped.values())}.items():
        right, wrong = (sum(reason is not None for reason in each) for each in (different, same))
        rows[kind] = {
            "different": len(different),
            "stopped": right,
            "recall": round(right / len(different), 4) if different else None,
            "same": len(same),
            "stopped_wrongly": wrong,
            "precision": round(right / (right + wrong), 4) if right + wrong else None,
            "reasons_wrongly": dict(Counter(filter(None, same)).most_common()),
        }
    return rows


def _all(parts: Iterable[list[list[str | None]]]) -> list[list[str | None]]:
    parts = list(parts)
    return [[reason for part in parts for reason in part[side]] for side in (0, 1)]


def _paraphrases(found: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Count the statements labelled equivalent by people that the guards stop."""
    cases = [Case("paraphrase", other, cluster[0], same=True) for cluster in found for other in cluster[1:]]
    return _table(cases, _existing)["paraphrase"]


def _put_together(found: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Count the lossless merges, which concatenate two statements, that the guard stops."""
    reasons: list[str | None] = []
    for cluster in found:
        for other in cluster[1:]:
            one = cluster[0].rstrip(" .")
            objection = objection_to_merge([other, cluster[0]], f"{one}; {other[0].lower()}{other[1:]}")
            reasons.append(objection.reason if objection else None)
    wrong = Counter(filter(None, reasons))
    return {"merges": len(reasons), "stopped": wrong.total(), "reasons": dict(wrong.most_common())}


def _print(title: str, rows: dict[str, Any]) -> None:
    print(title)
    for kind, row in rows.items():
        stopped = f"stopped {row['stopped']} of {row['different']} ({row['recall']})"
        wrongly = f"{row['stopped_wrongly']} of {row['same']} wrongly, precision {row['precision']}"
        print(f"  {kind:<11} {stopped}, {wrongly}  {row['reasons_wrongly']}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    halves: tuple[Half, ...] = ("development", "test")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.entry_guards", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("corpora", type=Path, help="folder with perspectrum and med-monotonicity")
    parser.add_argument("--half", choices=halves, default="test")
    parser.add_argument("--statements", type=int, help="most to change; default: one of each cluster")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
