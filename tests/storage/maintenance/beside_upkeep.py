"""A process beside a compaction: `python -m tests.storage.maintenance.beside_upkeep read|publish ROOT`.

`read` reads the corpus by its tables, by its index, and by a connection that stays open, until the file `stop` exists
beside it. `publish` publishes turns, 25 and as many more as there is time until the file `published` exists. Either
prints one JSON object about what it saw.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from parquetry.errors import PublishConflict
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import tuples
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.search.searcher import Searcher
from tests.storage.shelf import Shelf

DOCUMENTS = ("a.md", "b.md", "c.md")
TURNS = 25
PAUSE, DECIDED = 2, 0.5
"""seconds between two readings of a process, and from the start of a run to its publish: mostly, the processors are for
the compactions that are killed"""
_TEXTS = "SELECT text FROM chunks ORDER BY ALL"


def read(root: Path) -> dict[str, object]:
    settings, lake = SearchSettings(language="none"), Lake(str(root))
    wrong: list[object] = []
    reads, last = 0, 0
    open_since = connect_snapshot(lake.snapshot())
    first = tuples(open_since, _TEXTS)
    while True:
        stopping = (root.parent / "stop").exists()
        snapshot = lake.snapshot()
        with connect_snapshot(snapshot) as connection:
            texts = [text for (text,) in tuples(connection, _TEXTS)]
        opened = IndexFolder(lake.layout, settings).open(lake.snapshot())
        hits = [hit.row["text"] for hit in Searcher(opened.session()).search("turn", {}, "text", 10)]
        opened.close()
        # Every publish writes the same turn to all documents.
        wrong += [each for each in (texts, hits) if len(each) != len(DOCUMENTS) or len(set(each)) != 1]
        turn = int(texts[0].split()[1])
        wrong += [[last, turn]] if turn < last else []
        wrong += [] if tuples(open_since, _TEXTS) == first else ["what was open changed"]
        reads, last = reads + 1, turn
        time.sleep(PAUSE)
        if stopping:
            return {"reads": reads, "wrong": wrong, "last": last}


def publish(root: Path) -> dict[str, object]:
    shelf, conflicts = Shelf(root), 0
    shelf.run_ids = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{{:08x}}"
    enough, turn = root.parent / "published", 0
    while turn < TURNS or not enough.exists():
        turn += 1
        rows, run = shelf.write({path: [f"turn {turn}"] for path in DOCUMENTS})
        base = shelf.lake.snapshot()
        while True:
            # A run decides for a while.
            time.sleep(DECIDED)
            try:
                shelf.lake.publish(base, rows, run)
                break
            except PublishConflict:
                conflicts += 1
                base = shelf.lake.snapshot()
    return {"conflicts": conflicts, "turns": turn}


if __name__ == "__main__":
    role, place = sys.argv[1:]
    print(json.dumps({"read": read, "publish": publish}[role](Path(place))))
