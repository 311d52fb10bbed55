"""Many processes read while others publish: no error, no mixed versions, no leftover files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from parquetry.storage.index.folder import KEPT, IndexFolder

pytestmark = pytest.mark.slow

READERS = 8
PUBLISHES = 50


def test_eight_processes_read_through_fifty_publishes_and_switches(shelf):
    documents = ("a.md", "b.md", "c.md")
    folder = IndexFolder(shelf.lake.layout, shelf.settings)

    def publish(turn):
        shelf.publish({path: [f"turn {turn}"] for path in documents})
        folder.refresh(shelf.lake.snapshot())

    publish(1)
    size = sum(path.stat().st_size for path in folder.path.iterdir())
    command = [sys.executable, "-m", "tests.storage.reading_process", str(shelf.root)]
    here = Path(__file__).parents[3]
    readers = [
        subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(READERS)
    ]
    try:
        for turn in range(2, PUBLISHES + 1):
            publish(turn)
            kept = list(folder.path.glob("index-*.duckdb"))
            assert len(kept) <= KEPT
            assert {path.stem for path in folder.path.glob("index-*.lease")} == {path.stem for path in kept}
    finally:
        (shelf.root.parent / "stop").touch()
        ends = [reader.communicate(timeout=120) for reader in readers]
    assert [(reader.returncode, errors) for reader, (_, errors) in zip(readers, ends, strict=True)] == [
        (0, "")
    ] * READERS
    for output, _ in ends:
        saw = json.loads(output)
        assert saw["mixed"] == []
        assert saw["seen"] == sorted(saw["seen"])
        assert saw["seen"][-1] == PUBLISHES
        # No file handle stays open from one iteration to the next.
        assert max(saw["handles"]) == saw["handles"][0]
    assert sum(path.stat().st_size for path in folder.path.iterdir()) <= 2.5 * KEPT * size
