"""The benchmark of segments compares two indexes that find the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import segments

pytestmark = pytest.mark.slow


def test_an_index_in_segments_is_measured_beside_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "ROUNDS", 1)
    monkeypatch.setattr(segments, "UPDATES", 2)
    options = ["--chunks", "4000", "--segment", "1000", "--scratch", str(tmp_path), "--results", str(tmp_path)]
    ways = segments.main(options)["ways"]
    assert (ways["one file"]["segments"], ways["segments"]["segments"]) == (0, 4)
    assert ways["segments"]["bytes copied by an update"] < ways["one file"]["bytes copied by an update"]
    for figures in ways.values():
        assert all(figures[f"{mode}, ms"] > 0 for mode in segments.MODES)
        assert len(figures["updates"]) == 2
    assert (tmp_path / "segments.json").exists()
