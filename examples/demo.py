"""Refreshes the example handbook as a Prefect flow and asks it three questions, through the command line alone.

python examples/demo.py

The corpus stays in `.demo/`: a second run finds every document unchanged.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = "examples/parquetry.toml"
QUESTIONS = (
    "How long can new parents stay at home with their salary?",
    "Why does the fan in bay 4 run backwards after the electricity failed?",
    "How much cheaper are narrow boards under the new conditions of the timber merchant?",
)


def run(arguments: Sequence[str]) -> None:
    """Run one `parquetry` command, showing it as a person would type it.

    Raises:
        SystemExit: it failed; with its exit code.
    """
    print("\n$ parquetry " + shlex.join(arguments).replace("'", '"'), flush=True)
    done = subprocess.run([sys.executable, "-m", "parquetry.serving.cli.main", *arguments], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    run(["refresh", "--config", SETTINGS])
    for question in QUESTIONS:
        run(["search", "--config", SETTINGS, "-k", "1", "--full", question])


if __name__ == "__main__":
    main()
