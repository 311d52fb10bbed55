"""Number of language model calls for long conversations, for learning and for comparing.

    python -m benchmarks.session_calls CORPORA [--name session-calls]

CORPORA holds `synthetic-persona-chat`. Ten conversations are built from thirteen of its dialogues each, all in one
scope. A scripted model learns every statement that speakers make about themselves, and compares by shared words.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, conditions, write_result
from benchmarks.sessions import FILES, Trial, scripted_model
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot

PACKAGES = ("parquetry", "wordllama")
CONVERSATIONS = 10
DIALOGUES = 13
"""dialogues per conversation"""
STATEMENTS = 50
"""maximum number of statements that the model learns from a window"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="calls-benchmark-") as scratch, scripted_model(STATEMENTS) as model:
        folder = Path(scratch) / "chats"
        characters = _write(options.corpora / FILES[0], folder)
        trial = Trial(Path(scratch) / "trial", model.url)
        trial.prepare(folder)
        _, report = trial.run()
        asked = model.asked_about()
        judges = _judges(trial.corpus)
    compared = sum(count for kind, count in report["entries"].items() if kind not in ("refused", "quarantined"))
    result = {
        "conditions": conditions(PACKAGES),
        "conversations": CONVERSATIONS,
        "characters": characters,
        "statements": compared,
        "entries": report["entries"],
        "judges": judges,
        "asked": asked,
        "per_session": {kind: each["calls"] / CONVERSATIONS for kind, each in sorted(asked.items())},
    }
    print(f"{json.dumps(result, indent=1)}\nwritten to {write_result(options.name, result, options.results)}")
    return result


def _write(dialogues: Path, folder: Path) -> list[int]:
    """Write the conversations to a folder, one file each; return their lengths in characters."""
    folder.mkdir()
    with dialogues.open(encoding="utf-8", newline="") as stream:
        texts = [row["Best Generated Conversation"] for row in csv.DictReader(stream)]
    sizes = []
    for number in range(CONVERSATIONS):
        chosen = texts[number * DIALOGUES : (number + 1) * DIALOGUES]
        lines = [line for text in chosen for line in text.splitlines() if line.strip()]
        messages = [
            {"role": "user" if place % 2 == 0 else "assistant", "content": re.sub(r"^User \d: ", "", line)}
            for place, line in enumerate(lines)
        ]
        (folder / f"{number}.json").write_text(json.dumps({"messages": messages}), "utf-8")
        sizes.append(sum(len(each["content"]) for each in messages))
    return sizes


def _judges(corpus: Path) -> dict[str, int]:
    """Count statements by judge."""
    with connect_snapshot(Lake(str(corpus)).snapshot()) as connection:
        found = connection.execute("SELECT judge, count(*) FROM decisions GROUP BY judge ORDER BY judge").fetchall()
    return dict(found)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.session_calls", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("corpora", type=Path, help="folder with synthetic-persona-chat")
    parser.add_argument("--name", default="session-calls", help="of the file of results")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
