"""The benchmark of scheduled runs measures both runs of a service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import scheduled


@pytest.mark.slow
def test_runs_of_a_service_are_measured(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Boards\n\nCount them.\n")
    scheduled.main([str(tmp_path / "docs"), "--repetitions", "1", "--results", str(tmp_path)])
    runs = json.loads((tmp_path / "scheduled.json").read_text("utf-8"))["runs"]["parquetry"]
    assert {step: len(measured) for step, measured in runs.items()} == {"full": 1, "unchanged": 1}
    assert all(each["peak_pss_mb"] > 50 for (each,) in runs.values())
