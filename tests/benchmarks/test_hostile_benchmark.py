"""The benchmark of hostile files measures every class, and reports super-linear growth, hangs and failures."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import hostile
from tests.documentation import ROOT

pytestmark = pytest.mark.slow


def measured(results: Path, *arguments: str) -> dict[str, Any]:
    """Run the benchmark in a process of its own: the memory of one that ran other tests may be above the limit."""
    command = [sys.executable, "-m", "benchmarks.hostile", "--sizes", "2000", "20000", "--results", str(results)]
    subprocess.run([*command, *arguments], cwd=ROOT, check=True, capture_output=True)
    found: dict[str, Any] = json.loads((results / "hostile.json").read_text("utf-8"))
    return found


def test_growth_of_classes_is_measured_and_written(tmp_path: Path):
    result = measured(tmp_path, "--only", "html: <p", "--jobs", "2")
    assert {"html: <p>", "html: <p>x", "html: <pre>"} <= set(result["classes"])
    assert {row["outcome"] for rows in result["classes"].values() for row in rows} == {"indexed"}
    small, large = result["classes"]["html: <p>x"]
    assert large["bytes"] > 9 * small["bytes"]
    assert large["characters"] > small["characters"] > 0
    assert large["chunks"] > 0
    assert not result["not_finished"]
    assert not result["not_measured"]


def test_classes_of_all_readers_are_found():
    names = hostile.all_classes()
    assert {"html: <!---->", "markdown: '|'", "epub: <script", "notebook: outputs", "chat, csv: rows"} <= set(names)


def test_chats_are_read_as_chats(tmp_path: Path):
    rows = measured(tmp_path, "--only", "chat, csv: rows")["classes"]["chat, csv: rows"]
    assert [(row["outcome"], row["chunks"]) for row in rows] == [("indexed", 248), ("indexed", 2498)]


def test_file_that_is_read_without_end_is_given_up():
    def endless(size: int) -> tuple[bytes, str]:
        while time.process_time() > 0:
            size += 1
        return b"", "a.txt"

    rows = hostile.measure(endless, [10, 100], 0.1)
    assert [row["outcome"] for row in rows] in (["timeout"], ["died"])


def test_growth_is_the_largest_factor_for_ten_times_the_bytes():
    rows = [{"size": 10, "seconds": 1.0}, {"size": 100, "seconds": 9.0}, {"size": 500, "seconds": 90.0}]
    assert hostile.growth(rows) == 20.0
    assert hostile.growth([{"bytes": 10, "seconds": 0.001}, {"bytes": 100, "seconds": 9.0}]) == 0.0
