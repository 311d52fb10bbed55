"""Learning from real chat sessions with a scripted model: time, memory, repetition, a restart midway, Prefect.

python -m benchmarks.sessions CORPORA [--sessions 1000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, ROOT, conditions, wait_until_idle, write_result
from benchmarks.process_tree import Measured, measure
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot

PACKAGES = ("parquetry", "deltalake", "duckdb", "openai", "wordllama")
FILES = ("synthetic-persona-chat/data/Synthetic-Persona-Chat_valid.csv", "memorybank/en/memory_bank_en.json")
"""files within the corpora; sessions are taken from them in this order"""


@dataclass(frozen=True, slots=True)
class Trial:
    """Corpus to learn into."""

    folder: Path
    url: str
    direct: bool = True
    """True to run without Prefect"""

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    @property
    def command(self) -> list[str]:
        config = str(self.folder / "parquetry.toml")
        engine = ["--direct"] if self.direct else []
        return [
            sys.executable,
            "-m",
            "parquetry.serving.cli.main",
            "sessions",
            "refresh",
            *engine,
            "--json",
            "--config",
            config,
        ]

    def prepare(self, sessions: Path) -> None:
        """Write the settings."""
        self.folder.mkdir()
        (self.folder / "parquetry.toml").write_text(
            f"""[corpus]
root = "{self.corpus}"
[llm]
model = "scripted"
base_url = "{self.url}"
[[source]]
name = "chats"
uri = "{sessions}"
content = "sessions"
visibility = "organization"
org_id = "acme"
"""
        )

    def run(self) -> tuple[Measured, dict[str, Any]]:
        """Run to the end."""
        measured = measure(self.command, ROOT)
        if measured.exit_code:
            raise RuntimeError(f"exit {measured.exit_code}: {measured.errors}")
        return measured, json.loads(measured.output)

    def killed_after(self, answers: int) -> int:
        """Start a run, kill it once `answers` answers are stored, and return the number stored by then."""
        with subprocess.Popen(self.command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and self.answers() < answers:
                time.sleep(0.05)
            process.kill()
        return self.answers()

    def answers(self) -> int:
        return sum(1 for _ in (self.corpus / "answers").rglob("*.json"))

    def live(self) -> list[str]:
        """Return the texts of the live entries."""
        with connect_snapshot(Lake(str(self.corpus)).snapshot()) as connection:
            return [text for (text,) in connection.execute("SELECT text FROM entries ORDER BY text").fetchall()]

    def untraced(self) -> int:
        """Count live entries that no decision traces to a session and a message."""
        with connect_snapshot(Lake(str(self.corpus)).snapshot()) as connection:
            found = connection.execute(
                """SELECT count(*) FROM entries WHERE entry_id NOT IN (SELECT entry_id FROM decisions
                WHERE entry_id IS NOT NULL AND session_uri IS NOT NULL AND len(evidence) > 0)"""
            ).fetchone()
        return int(found[0]) if found else 0


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    wait_until_idle(options.max_load)
    with tempfile.TemporaryDirectory(prefix="sessions-benchmark-") as scratch, scripted_model() as model:
        folder = Path(scratch) / "chats"
        taken = take(options.corpora, folder, options.sessions)
        whole, broken = Trial(Path(scratch) / "whole", model.url), Trial(Path(scratch) / "broken", model.url)
        flow = Trial(Path(scratch) / "flow", model.url, direct=False)
        for trial in (whole, broken, flow):
            trial.prepare(folder)
        first, report = whole.run()
        again, unchanged = whole.run()
        kept = broken.killed_after(report["calls"] // 2)
        asked = model.asked()
        restarted, rest = broken.run()
        repeated = asked + rest["calls"] - 2 * report["calls"] - unchanged["calls"]
        as_flow, flown = flow.run()
        result = {
            "conditions": conditions(PACKAGES),
            "sessions": taken,
            "first": {**_figures(first), **_told(report)},
            "unchanged": {**_figures(again), **_told(unchanged)},
            "restart": {
                **_figures(restarted),
                **_told(rest),
                "answers_kept_by_the_killed_run": kept,
                "calls_of_the_killed_run": asked - report["calls"] - unchanged["calls"],
                "calls_more_than_without_the_kill": repeated,
                "same_live_entries_as_without_the_kill": broken.live() == whole.live(),
            },
            "prefect": {
                **_figures(as_flow),
                **_told(flown),
                "same_live_entries_as_without_prefect": flow.live() == whole.live(),
            },
            "live_entries": len(whole.live()),
            "live_entries_without_a_trace": whole.untraced(),
        }
    print(f"{json.dumps(result, indent=1)}\nwritten to {write_result('sessions', result, options.results)}")
    return result


def take(corpora: Path, folder: Path, sessions: int) -> dict[str, int]:
    """Write files with the given number of sessions to a folder, cutting the first file to size.

    Returns:
        Number of sessions by file.
    """
    import csv

    folder.mkdir()
    csv_file, json_file = (corpora / name for name in FILES)
    taken = {json_file.name: _count(json_file)}
    (folder / json_file.name).write_bytes(json_file.read_bytes())
    with csv_file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    wanted = rows[: 1 + max(1, sessions - taken[json_file.name])]
    with (folder / csv_file.name).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(wanted)
    return {csv_file.name: _count(folder / csv_file.name), **taken}


def _count(file: Path) -> int:
    from parquetry.model import RawDocument
    from parquetry.sessions.model import Transcript
    from parquetry.sessions.transcripts.registry import read_transcripts

    return sum(isinstance(found, Transcript) for found in read_transcripts(RawDocument(file.read_bytes(), file.name)))


class Model:
    """The scripted model in a separate process, so that its memory is not measured."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = self._line()

    def asked(self) -> int:
        """Return the number of calls answered."""
        return sum(each["calls"] for each in self.asked_about().values())

    def asked_about(self) -> dict[str, dict[str, int]]:
        """Return the calls and the characters read, by purpose: `distill`, `compare`."""
        assert self._process.stdin is not None
        self._process.stdin.write("count\n")
        self._process.stdin.flush()
        counts: dict[str, dict[str, int]] = json.loads(self._line())
        return counts

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def scripted_model(*arguments: int) -> Iterator[Model]:
    """Run the model for the duration of the block."""
    command = [sys.executable, "-m", "benchmarks.session_model", *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Model(process)
        assert process.stdin is not None
        process.stdin.close()


def _figures(measured: Measured) -> dict[str, Any]:
    told = asdict(measured)
    return {name: told[name] for name in ("wall_seconds", "processor_seconds", "peak_pss_mb", "load_before")}


def _told(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in ("sessions", "entries", "calls", "cached", "tokens", "version")}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("corpora", type=Path, help="folder with synthetic-persona-chat and memorybank")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--max-load", type=float, help="wait until the load average is below this")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
