"""Four processes read and one publishes while a corpus is compacted again and again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from parquetry.errors import PublishConflict
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.vacuum import vacuum
from tests.storage.maintenance.beside_upkeep import DOCUMENTS, TURNS
from tests.storage.maintenance.test_compaction import NEWEST_ONLY, stamp

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
READERS = 4


def test_readers_and_runs_go_on_during_compactions_and_vacuums(shelf):
    shelf.run_ids = "20260101T000000-{:08x}"
    for _ in range(6):
        shelf.publish({path: ["turn 0"] for path in DOCUMENTS})
    here = Path(__file__).parents[3]

    def started(role):
        command = [sys.executable, "-m", "tests.storage.maintenance.beside_upkeep", role, str(shelf.root)]
        return subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    readers, publisher = [started("read") for _ in range(READERS)], started("publish")
    compacted = given_up = 0
    try:
        while publisher.poll() is None:
            try:
                done = compact(shelf.lake, NEWEST_ONLY, shelf.settings, stamp())
                compacted += not done.is_idle
                vacuum(shelf.lake, NEWEST_ONLY, stamp())
            except PublishConflict:
                given_up += 1
    finally:
        (shelf.root.parent / "stop").touch()
        ends = [(*each.communicate(timeout=120), each.returncode) for each in (*readers, publisher)]
    assert [(errors, code) for _, errors, code in ends] == [("", 0)] * (READERS + 1)
    for output, _, _ in ends[:READERS]:
        saw = json.loads(output)
        assert saw["wrong"] == []
        assert (saw["reads"] > 3, saw["last"]) == (True, TURNS)
    assert (compacted > 1, given_up) == (True, 0)
    assert shelf.texts() == {path: [f"turn {TURNS}"] for path in DOCUMENTS}
    found = examine(shelf.lake, shelf.settings).findings
    assert [each for each in found if each.severity == "problem"] == []
