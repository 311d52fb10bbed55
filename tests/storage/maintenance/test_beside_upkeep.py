"""Four processes read and one publishes while a corpus is compacted again and again, whole or killed at any moment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parquetry.storage.index.check import disagreements
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.vacuum import vacuum
from tests.series import part_of
from tests.storage.maintenance.beside_upkeep import DOCUMENTS, TURNS
from tests.storage.maintenance.test_compaction import NEWEST_ONLY, stamp
from tests.storage.maintenance.test_upkeep_killed import ask, runner

__all__ = ["runner"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
READERS = 4
MOMENTS = 20
"""moments that a run tries"""
WHOLE = 8
"""kills after which a compaction is whole: they leave more and more files"""


def test_readers_and_runs_go_on_beside_compactions_killed_at_any_file_operation(shelf, runner, tmp_path):
    shelf.run_ids = "20260101T000000-{:08x}"
    for _ in range(6):
        shelf.publish({path: ["turn 0"] for path in DOCUMENTS})
    events = ask(runner, shutil.copytree(shelf.root, tmp_path / "alone"), "compact", days=0)["events"]
    moments = part_of(range(1, events + 1), MOMENTS)
    here = Path(__file__).parents[3]

    def started(role):
        command = [sys.executable, "-m", "tests.storage.maintenance.beside_upkeep", role, str(shelf.root)]
        return subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    readers, publisher = [started("read") for _ in range(READERS)], started("publish")
    killed = 0
    try:
        while killed < len(moments) and publisher.poll() is None:
            # One that finds nothing to do ends before its moment; the publisher makes more to do.
            killed += ask(runner, shelf.root, "compact", moments[killed], days=0)["killed"]
            if killed % WHOLE == 0:
                compact(shelf.lake, NEWEST_ONLY, shelf.settings, stamp())
                vacuum(shelf.lake, NEWEST_ONLY, stamp())
        (shelf.root.parent / "published").touch()
        turns = json.loads(publisher.communicate(timeout=120)[0])["turns"]
        compact(shelf.lake, NEWEST_ONLY, shelf.settings, stamp())
    finally:
        (shelf.root.parent / "stop").touch()
        ends = [(*each.communicate(timeout=120), each.returncode) for each in readers]
    assert [(errors, code) for _, errors, code in ends] == [("", 0)] * READERS
    assert publisher.returncode == 0
    for output, _, _ in ends:
        saw = json.loads(output)
        assert saw["wrong"] == []
        assert (saw["reads"] > 3, saw["last"]) == (True, turns)
    assert (events > 10, killed, turns >= TURNS) == (True, len(moments), True)
    assert shelf.texts() == {path: [f"turn {turns}"] for path in DOCUMENTS}
    found = examine(shelf.lake, shelf.settings).findings
    assert [each for each in found if each.severity == "problem"] == []
    # The index that followed all of it equals one that is built from nothing.
    assert disagreements(shelf.lake.snapshot(), shelf.settings)[1] == []
