"""A compaction or a vacuum killed at any file operation loses nothing, and the next one completes it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parquetry.model import Access
from parquetry.settings.sections import SearchSettings
from parquetry.storage.index.check import disagreements
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.retention import add_tag
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.maintenance.doctor import examine
from tests.series import part_of
from tests.storage.maintenance.test_compaction import stamp
from tests.storage.shelf import Shelf

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

RUNNER = Path(__file__).parent / "upkeep_runner.py"
SETTINGS = SearchSettings(language="none")
PARTS, MOMENTS = 2, 16
"""parts of the moments, by processes, and moments that a run tries"""


@pytest.fixture(scope="module")
def runner():
    process = subprocess.Popen([sys.executable, RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    process.stdin.close()
    process.stdout.close()
    assert process.wait(30) == 0


def ask(runner, corpus, command, event=None, days=40):
    request = {"corpus": str(corpus), "command": command, "event": event, "days": days}
    runner.stdin.write(json.dumps(request) + "\n")
    runner.stdin.flush()
    return json.loads(runner.stdout.readline())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A corpus with superseded, removed and tagged content, and an index that lacks the last publishes."""
    shelf = Shelf(tmp_path_factory.mktemp("killed") / "corpus")
    shelf.run_ids = "20260101T000000-{:08x}"
    for number in range(6):
        shelf.publish({f"{number % 3}.md": [f"the oak of {number}", "an elm"], f"new{number}.md": [f"ash {number}"]})
        if number == 2:
            add_tag(shelf.lake.layout, "audit", shelf.lake.snapshot().version, stamp().at)
    with shelf.index():
        pass
    shelf.remove("new3.md")
    shelf.permit("1.md", Access("individual", None, "ada", ()))
    return shelf.root


def seen(corpus, version=None):
    """Return all visible rows of a version, with vectors."""
    with connect_snapshot(Lake(str(corpus)).snapshot(version)) as connection:
        return [
            connection.execute(f"SELECT * FROM {view} ORDER BY ALL").fetchall()
            for view in ("documents", "chunks", "texts")
        ]


def check(corpus, expected, moment):
    """Compare all rows of the newest and of the tagged version, the index and what the doctor finds."""
    assert (seen(corpus), seen(corpus, "audit")) == expected, moment
    found = examine(Lake(str(corpus)), SETTINGS).findings
    assert [each for each in found if each.severity == "problem"] == [], moment


def copied(made, place):
    shutil.copytree(made, place)
    return place


@pytest.fixture(scope="module")
def compacted(made, runner, tmp_path_factory):
    corpus = copied(made, tmp_path_factory.mktemp("compacted") / "corpus")
    assert not ask(runner, corpus, "compact")["killed"]
    return corpus


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("command", ["compact", "vacuum"])
def test_killed_at_any_file_operation(made, compacted, runner, tmp_path, command, part):
    before, days = (made, 40) if command == "compact" else (compacted, 80)
    expected = (seen(before), seen(before, "audit"))
    whole = copied(before, tmp_path / "whole")
    events = ask(runner, whole, command, days=days)["events"]
    check(whole, expected, command)
    files = sorted(path.name.partition("-")[2] for path in (whole / "documents").glob("*.parquet"))
    assert events > 10
    for event in part_of(range(1, events + 1), MOMENTS)[part::PARTS]:
        corpus = copied(before, tmp_path / str(event))
        assert ask(runner, corpus, command, event, days)["killed"]
        check(corpus, expected, event)
        assert not ask(runner, corpus, command, days=days + 10)["killed"]
        check(corpus, expected, event)
        assert disagreements(Lake(str(corpus)).snapshot(), SETTINGS)[1] == []
        if command == "vacuum":
            assert sorted(path.name.partition("-")[2] for path in (corpus / "documents").glob("*.parquet")) == files
        shutil.rmtree(corpus)
