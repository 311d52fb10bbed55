"""A process that reads a corpus repeatedly while others publish: `python -m tests.storage.reading_process ROOT`.

Ends when the file `stop` exists beside the corpus; prints one JSON object about its observations.
"""

import json
import os
import sys
import time
from pathlib import Path

from parquetry.settings.sections import SearchSettings
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.lake import Lake
from parquetry.storage.search.searcher import Searcher


def main(root):
    lake, stop = Lake(root), Path(root).parent / "stop"
    settings = SearchSettings(language="none")
    seen, mixed, handles = [], [], []
    while True:
        last = stop.exists()
        opened = IndexFolder(lake.layout, settings).open(lake.snapshot())
        hits = Searcher(opened.session()).search("turn", {}, "text", 10)
        turns = {hit.row["text"] for hit in hits}
        # Every publish writes the same turn to all documents; the version counts the publishes.
        if len(hits) != 3 or turns != {f"turn {opened.version}"}:
            mixed.append([opened.version, sorted(hit.row["text"] for hit in hits)])
        seen.append(opened.version)
        opened.close()
        handles.append(len(list(Path(f"/proc/{os.getpid()}/fd").iterdir())) if Path("/proc").is_dir() else 0)
        # Eight readers without a pause would leave the publishing process no time.
        time.sleep(1.5)
        if last:
            print(json.dumps({"seen": seen, "mixed": mixed, "handles": handles}))
            return


if __name__ == "__main__":
    main(sys.argv[1])
