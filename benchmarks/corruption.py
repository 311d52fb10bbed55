"""Effects of damage to any file of a corpus: detection, search and repair.

python -m benchmarks.corruption
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.conditions import ROOT, conditions, write_result
from parquetry.errors import ParquetryError
from parquetry.serving.cli.doctor_command import Repair, mend
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.doctor import examine

PACKAGES = ("parquetry", "deltalake", "duckdb", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    started = time.monotonic()
    with ProcessPoolExecutor(2) as processes:
        trials = list(processes.map(_damage_all, (True, False), (options.flips, options.flips)))
    outcomes = {key: counts for trial in trials for key, counts in trial.outcomes.items()}
    wrong = [line for trial in trials for line in trial.wrong]
    result = {
        "conditions": conditions(PACKAGES),
        "flips": options.flips,
        "seconds": round(time.monotonic() - started, 1),
        "classes": [
            {"damaged": kind, "how": how, "index": index, **{key: counts[key] for key in sorted(counts)}}
            for (index, kind, how), counts in sorted(outcomes.items(), key=str)
        ],
        "totals": dict(sum(outcomes.values(), Counter())),
        "lost": {"with an index": trials[0].lost, "without": trials[1].lost},
        "wrong": wrong,
    }
    print(f"{result['totals']}, wrong: {wrong}\nwritten to {write_result('corruption', result, options.results)}")
    return result


@dataclass
class _Outcome:
    """Outcomes after each kind of damage."""

    outcomes: dict[tuple[bool, str, str], Counter[str]] = field(default_factory=dict)
    lost: dict[str, dict[str, int]] = field(default_factory=dict)
    """damaged file -> table -> maximum number of unrecoverable rows"""
    wrong: list[str] = field(default_factory=list)


def _damage_all(index: bool, flips: int) -> _Outcome:
    sys.path.insert(0, str(ROOT / "tests"))
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="corruption-benchmark-") as scratch:
        trial = _Trial(Path(scratch), flips)
        for file in trial.files:
            trial.damage(file, index=index)
    return trial.outcome


class _Trial:
    """A corpus that is damaged repeatedly."""

    def __init__(self, scratch: Path, flips: int) -> None:
        from tests import corruption

        corruption.FLIPS = flips
        self._tools = corruption
        self._workshop = corruption.make_corpus(scratch)
        self._corpus = scratch / "corpus"
        self._held = corruption.state(self._corpus)
        self._answers = corruption.answers(self._workshop.settings)
        self._pristine = Path(shutil.copytree(self._corpus, scratch / "pristine"))
        self.files = [file.relative_to(self._pristine) for file in corruption.files_of(self._pristine)]
        self.outcome = _Outcome()

    def damage(self, file: Path, *, index: bool) -> None:
        """Damage a file in each way; then check, search and repair."""
        kind = self._tools.kind_of(self._pristine / file, self._pristine)
        if kind == "search index" and not index:
            return
        for number, (how, _) in enumerate(self._tools.damages(self._pristine / file)):
            for steps in ((self._searched,), (self._named, self._mended)):
                shutil.rmtree(self._corpus)
                shutil.copytree(self._pristine, self._corpus)
                if not index:
                    shutil.rmtree(self._corpus / "index")
                list(self._tools.damages(self._corpus / file))[number][1]()
                for step in steps:
                    what = step(file)
                    told = what.partition(":")[0]
                    self.outcome.outcomes.setdefault((index, kind, how), Counter())[told] += 1
                    if told == "WRONG":
                        self.outcome.wrong.append(f"{file} {how}, index {index}: {what}")

    def _named(self, file: Path) -> str:
        try:
            checkup = examine(Lake(str(self._corpus)), self._workshop.settings.search)
        except ParquetryError as error:
            return "named" if file.name in str(error) else f"WRONG: {error}"
        if any(file.name in finding.detail for finding in checkup.findings if finding.severity == "problem"):
            return "named"
        if checkup.healthy and self._tools.state(self._corpus) == self._held:
            return "changes nothing"
        return f"WRONG: {[finding.detail for finding in checkup.findings]}"

    def _searched(self, file: Path) -> str:
        try:
            found = self._tools.answers(self._workshop.settings)
        except ParquetryError as error:
            return "search names the file" if file.name in str(error) else f"WRONG: {error}"
        return "search is right" if found == self._answers else "search answers otherwise"

    def _mended(self, file: Path) -> str:
        told = Repair(silent=True)
        mend(self._workshop.settings, told)
        checkup = examine(Lake(str(self._corpus)), self._workshop.settings.search)
        after = self._tools.state(self._corpus)
        lost = {table: len(rows - after[table]) for table, rows in self._held.items() if rows - after[table]}
        for table, count in lost.items():
            kind = self._tools.kind_of(self._pristine / file, self._pristine)
            self.outcome.lost.setdefault(kind, {})[table] = max(count, self.outcome.lost.get(kind, {}).get(table, 0))
        if not checkup.healthy:
            return f"WRONG: still damaged: {[finding.detail for finding in checkup.findings]}"
        if not lost:
            return "all is back"
        return "what is lost is told" if told.lost else f"WRONG: lost {lost}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corruption", description=__doc__)
    parser.add_argument("--flips", type=int, default=3, help="places of each file that are flipped")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
