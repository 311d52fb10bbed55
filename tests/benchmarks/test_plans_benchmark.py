"""The benchmark of plans measures plans that are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.plans import main

pytestmark = pytest.mark.slow


def test_every_plan_finds_what_is_new_or_changed(tmp_path: Path) -> None:
    result = main(["--documents", "30", "--scratch", str(tmp_path), "--results", str(tmp_path)])
    assert result is not None
    counts = [(each["step"], each["counts"]["added"], each["counts"]["changed"]) for each in result["steps"]]
    assert counts == [("new", 30, 0), ("unchanged", 0, 0), ("ten changed", 0, 10)]
    assert all(each["counts"]["scanned"] == 30 and each["peak_pss_mb"] > 10 for each in result["steps"])
    assert (tmp_path / "plans.json").exists()
