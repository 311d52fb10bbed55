"""The benchmark of upkeep measures many refreshes, a compaction and a vacuum, and continues where it was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import upkeep

pytestmark = pytest.mark.slow


def test_refreshes_are_measured_in_parts_and_the_upkeep_after_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "EVERY", 5)
    assert upkeep.measure(tmp_path, refreshes=10, documents=10, at_most=5) is None
    found = upkeep.measure(tmp_path, refreshes=10, documents=10, at_most=5)
    assert found is not None
    first, half, last = found["steps"]
    assert [step["refreshes"] for step in (first, half, last)] == [0, 5, 10]
    assert first["files_on_disk"] < half["files_on_disk"] < last["files_on_disk"]
    assert sum(found["compact"]["files_before"].values()) > sum(found["compact"]["files_after"].values())
    assert found["compact"]["rows_dropped"]["chunks"] > 0
    assert found["vacuum"]["deleted_files"] > 0
    assert found["vacuum"]["table_bytes"] < last["table_bytes"]
    assert found["refreshes_after"]["count"] == 1
