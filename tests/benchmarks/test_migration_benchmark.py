"""The benchmark of migrations searches while it migrates, and counts what was embedded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import migration

pytestmark = pytest.mark.slow


def test_every_text_is_embedded_once_and_every_search_is_answered(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(migration, "QUIET_SECONDS", 0.5)
    (tmp_path / "docs").mkdir()
    for number in range(3):
        text = f"Rule {number}: " + "install the package, and count the fonts and symbols on each page layout. " * 3
        (tmp_path / "docs" / f"{number}.md").write_text(text)
    migration.main([str(tmp_path / "docs"), "--results", str(tmp_path)])
    result = json.loads((tmp_path / "migration.json").read_text("utf-8"))
    assert (result["failed_searches"], result["texts"]["embedded_twice"]) == (0, 0)
    assert result["texts"]["embedded"] == result["build"]["chunks"]["embedded"] == 3
    assert result["switch"]["chunks"]["written"] == 0
    assert set(result["searches"]) == {"before", "build", "switch", "after"}
    assert result["after_vacuum"]["mb"]["chunks"] <= result["migrated"]["mb"]["chunks"]
