"""Refreshes the example handbook as a Prefect flow, then asks it three questions and queries it, by command line.

python examples/demo.py

The corpus stays in `.demo/`: a second run finds every document unchanged.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = "examples/parquetry.toml"
_OPTIONS = ("--config", SETTINGS)
STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Refresh: scan, extract, chunk, embed and publish a folder, as a Prefect flow", ("refresh", *_OPTIONS)),
    (
        "Ask: the answer is on a slide",
        (
            *("search", *_OPTIONS, "-k", "1", "--citations"),
            "Why does the fan in bay 4 run backwards after the electricity failed?",
        ),
    ),
    (
        "Ask: the answer is in a PDF attached to an e-mail",
        (
            *("search", *_OPTIONS, "-k", "1", "--citations"),
            "How much cheaper are narrow boards under the new conditions of the timber merchant?",
        ),
    ),
    (
        "Ask: print the whole chunk",
        (
            *("search", *_OPTIONS, "-k", "1", "--full"),
            "How long can new parents stay at home with their salary?",
        ),
    ),
    (
        "Query: the same chunks in SQL",
        (
            *("sql", *_OPTIONS),
            "SELECT filename, page FROM chunks WHERE text ILIKE '%rebate%' ORDER BY ALL",
        ),
    ),
)
NEXT = (
    f'.venv/bin/parquetry search --config {SETTINGS} "When was the lift inspected?"',
    f".venv/bin/parquetry documents --config {SETTINGS}",
    ".venv/bin/parquetry plan examples/handbook/people",
    ".venv/bin/parquetry --help",
)
"""commands to try after the demo"""


def run(arguments: Sequence[str]) -> None:
    """Run one `parquetry` command, showing it as a person would type it, and its duration.

    Raises:
        SystemExit: it failed; with its exit code.
    """
    print(
        "$ parquetry " + " ".join(f'"{each}"' if " " in each else shlex.quote(each) for each in arguments), flush=True
    )
    started = perf_counter()
    done = subprocess.run([sys.executable, "-m", "parquetry.serving.cli.main", *arguments], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    print(f"({perf_counter() - started:.1f} s)", flush=True)


def main() -> None:
    started = perf_counter()
    for number, (title, arguments) in enumerate(STEPS, 1):
        print(f"\n[{number}/{len(STEPS)}] {title}")
        run(arguments)
    print(f"\nDone in {perf_counter() - started:.1f} s. The corpus is in .demo/corpus. Try next:\n")
    for command in NEXT:
        print(f"  {command}")


if __name__ == "__main__":
    main()
