"""The schedule of maintenance fires on a real server, compacts a corpus once, and does nothing after that."""

from __future__ import annotations

import pytest

from parquetry.planning.compaction import MANY_FILES
from parquetry.storage.files.layout import is_compacted
from tests.deployments.served import serving
from tests.storage.shelf import Shelf

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SETTINGS = """[corpus]
root = "{corpus}"
[search]
language = "none"
[retention]
schedule = "* * * * *"
"""
IDLE = "Nothing to do: the corpus is compact."


def test_schedule_compacts_a_scattered_corpus_once_and_then_does_nothing(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.run_ids = "20260101T000000-{:08x}"
    for number in range(MANY_FILES):
        shelf.publish({f"{number}.md": [f"the oak of {number}"]})
    before = shelf.texts()
    with serving(SETTINGS.format(corpus=shelf.root), tmp_path) as service:
        assert "maintenance/scheduled: * * * * * (UTC)" in service.output.read_text()
        first, second = service.until(lambda: _two(service.scheduled_runs("maintenance/scheduled")))
        assert [run["created_by"]["type"] for run in (first, second)] == ["SCHEDULE"] * 2
        assert [run["state_type"] for run in (first, second)] == ["COMPLETED"] * 2, (first["state"], second["state"])
        assert any("compacted 150 files to 3" in line for line in service.log(first["id"]))
        assert second["state"]["message"] == IDLE
    assert shelf.texts() == before
    assert [is_compacted(file) for file in shelf.lake.snapshot().files["chunks"]] == [True]
    with shelf.connect() as connection:
        assert connection.execute("SELECT kind, status FROM runs").fetchall() == [("compact", "completed")]


def _two(runs):
    return runs[:2] if len(runs) >= 2 else None
