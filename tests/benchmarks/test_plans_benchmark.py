"""The benchmark of plans measures plans that are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.plans import main

pytestmark = pytest.mark.slow


def test_every_plan_finds_what_is_new_or_changed(tmp_path: Path) -> None:
    result = main(["--documents", "30", "--scratch", str(tmp_path), "--results", str(tmp_path)])
    assert result is not None
    assert {each["step"]: each["counts"] for each in result["steps"]} == {
        "new": {"scanned": 30, "added": 30},
        "unchanged": {"scanned": 30, "unchanged": 30},
        "ten changed": {"scanned": 30, "changed": 10, "unchanged": 20},
        "one named": {"scanned": 1, "unchanged": 1},
        "settings changed": {"scanned": 30, "changed": 30},
        "listing": {"scanned": 30},
    }
    assert all(each["peak_pss_mb"] > 10 for each in result["steps"])
    assert (tmp_path / "plans.json").exists()
