"""Compact or vacuum a corpus in a forked child that is killed at a given moment. One JSON request per line of stdin.

A request names the corpus, the command, and the number of the file operation in the corpus at which the child dies, or
none. Only operations that change something count. The response contains the outcome of the child and their number.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from parquetry.planning.rows import RunStamp
from parquetry.settings.retention import RetentionSettings
from parquetry.settings.sections import SearchSettings
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.vacuum import vacuum
from tests.forked_children import answer_requests, die

MADE = {"os.rename": 1, "os.link": 1, "os.remove": 0, "os.mkdir": 0, "open": 0}
"""audit events of file operations that change something -> place of the path in their arguments"""
NEWEST_ONLY = RetentionSettings(days=1, versions=1)


def child(request: dict[str, Any]) -> dict[str, Any]:
    corpus, count = request["corpus"], 0
    staging = str(Path(corpus) / "staging")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in MADE or (event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            return
        place = str(arguments[MADE[event]])
        # What is tried out in a copy of a log is not seen by others.
        if place.startswith(corpus) and not place.startswith(staging):
            count += 1
            if count == request.get("event"):
                die()

    sys.addaudithook(hook)
    at = datetime.now(UTC) + timedelta(days=request["days"])
    stamp = RunStamp(f"{at:%Y%m%dT%H%M%S}-{request.get('event') or 0:08x}", at)
    lake = Lake(corpus, create=True)
    if request["command"] == "compact":
        compact(lake, NEWEST_ONLY, SearchSettings(language="none"), stamp)
    else:
        vacuum(lake, NEWEST_ONLY, stamp)
    return {"events": count}


if __name__ == "__main__":
    answer_requests(child)
