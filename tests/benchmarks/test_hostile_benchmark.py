"""The benchmark of hostile files measures every class, and reports super-linear growth, hangs and failures."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks import hostile

pytestmark = pytest.mark.slow


def test_growth_of_classes_is_measured_and_written(tmp_path: Path):
    arguments = ["--only", "html: <p", "--jobs", "2", "--sizes", "2000", "20000", "--results", str(tmp_path)]
    hostile.main(arguments)
    result = json.loads((tmp_path / "hostile.json").read_text("utf-8"))
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
    hostile.main(["--only", "chat, csv: rows", "--sizes", "2000", "20000", "--results", str(tmp_path)])
    rows = json.loads((tmp_path / "hostile.json").read_text("utf-8"))["classes"]["chat, csv: rows"]
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
