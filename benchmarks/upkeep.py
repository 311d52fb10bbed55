"""Many small refreshes in a row, then a compaction and a vacuum: files, log, times to open and search before and after.

    python -m benchmarks.upkeep [--refreshes 1000] [--documents 200] [--place FOLDER [--at-most N]] [--name upkeep]

Documents are generated, a few sentences each. Each refresh finds one new text among them. With `--place`, the corpus is
kept there, and each call continues with at most N further refreshes. The compaction and the vacuum run as they would
a year later, so that everything superseded is dropped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.durability import WORDS, write_documents
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.planning.rows import RunStamp
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import Settings, parse_settings
from parquetry.storage.connect import connect
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.vacuum import vacuum
from parquetry.tasks.engine.base import DirectEngine

PACKAGES = ("parquetry", "deltalake", "duckdb", "pyarrow")
EVERY = 100
"""refreshes between two measurements"""
REPEATED = 5
"""times that an opening or a search is measured; the median counts"""
QUERIES = ("oak and elm", "dry blades", "signed order", "glue for the hall", "leave ash")


def refresh_once(settings: Settings, folder: Path, number: int, documents: int) -> tuple[float, float]:
    """Change one document and refresh; return the seconds, and those of processors."""
    changed = folder / f"{number % documents}.md"
    words = " ".join(WORDS[(number * 5 + place) % len(WORDS)] for place in range(60))
    changed.write_text(f"# Document {number % documents}\n\nEdition {number}: {words}.\n")
    started, before = time.perf_counter(), _processor_seconds()
    run_refresh(Request(settings), DirectEngine(), Observer())
    return time.perf_counter() - started, _processor_seconds() - before


def _processor_seconds() -> float:
    """Return the seconds of processors that this process and its children that ended have taken."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _summary(taken: Sequence[tuple[float, float]]) -> dict[str, float]:
    seconds, processor = zip(*taken, strict=True)
    return {
        "mean": round(statistics.mean(seconds), 3),
        "median": round(statistics.median(seconds), 3),
        "processor_median": round(statistics.median(processor), 3),
    }


def state_of(settings: Settings) -> dict[str, Any]:
    """Return the files of a corpus, and how long it takes to open and to search it."""
    root = Path(settings.corpus.root)
    logs = [file for table in TABLES for file in (root / table / "_delta_log").iterdir()]
    live = Lake(str(root)).snapshot().files
    openings, searches, scans = [], [], []
    for query in QUERIES[:REPEATED]:
        started = time.perf_counter()
        Lake(str(root)).snapshot()
        openings.append(time.perf_counter() - started)
        started = time.perf_counter()
        with Reader(settings) as reader:
            reader.search(SearchRequest(query, k=5))
        searches.append(time.perf_counter() - started)
        started = time.perf_counter()
        with closing(connect(str(root), search=False)) as connection:
            connection.execute("SELECT count(*), sum(len(text)) FROM chunks").fetchall()
        scans.append(time.perf_counter() - started)
    return {
        "files": {table: len(live[table]) for table in TABLES if live[table]},
        "files_on_disk": sum(len(list((root / table).glob("*.parquet"))) for table in TABLES),
        "table_bytes": sum(file.stat().st_size for table in TABLES for file in (root / table).glob("*.parquet")),
        "log_files": len(logs),
        "log_bytes": sum(file.stat().st_size for file in logs),
        "index_bytes": sum(file.stat().st_size for file in (root / "index").glob("*.duckdb")),
        "open_seconds": round(statistics.median(openings), 4),
        "search_seconds": round(statistics.median(searches), 4),
        "sql_without_index_seconds": round(statistics.median(scans), 4),
    }


def measure(place: Path, refreshes: int, documents: int, at_most: int) -> dict[str, Any] | None:
    """Refresh, compact, vacuum and refresh again; None if refreshes are left to do."""
    folder, partial = place / "docs", place / "steps.json"
    settings = parse_settings(
        {"corpus": {"root": str(place / "corpus")}, "source": [{"name": "docs", "uri": str(folder)}]}, "benchmark"
    )
    if not folder.exists():
        folder.mkdir(parents=True)
        write_documents(folder, documents, 0)
        run_refresh(Request(settings), DirectEngine(), Observer())
        partial.write_text(json.dumps({"steps": [{"refreshes": 0, **state_of(settings)}]}))
    steps = json.loads(partial.read_text())["steps"]
    done = steps[-1]["refreshes"]
    for first in range(done, min(refreshes, done + at_most), EVERY):
        taken = [refresh_once(settings, folder, first + each, documents) for each in range(EVERY)]
        steps.append({"refreshes": first + EVERY, "seconds_per_refresh": _summary(taken), **state_of(settings)})
        partial.write_text(json.dumps({"steps": steps}))
        print(json.dumps(steps[-1]), flush=True)
    if steps[-1]["refreshes"] < refreshes:
        return None
    return {"documents": documents, "steps": steps, **_upkeep(settings, folder, refreshes, documents)}


def _upkeep(settings: Settings, folder: Path, refreshes: int, documents: int) -> dict[str, Any]:
    lake = Lake(settings.corpus.root, create=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    done = compact(lake, settings.retention, settings.search, _later(366))
    compacting = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compacted = state_of(settings)
    started = time.perf_counter()
    deleted = vacuum(lake, settings.retention, _later(368))
    vacuuming = time.perf_counter() - started
    vacuumed = state_of(settings)
    taken = [refresh_once(settings, folder, refreshes + each, documents) for each in range(EVERY // 5)]
    return {
        "compact": {
            "seconds": round(compacting, 2),
            "files_before": done.files_before,
            "files_after": done.files_after,
            "rows_dropped": done.rows_dropped,
            "peak_mb_before": before // 1024,
            "peak_mb_after": after // 1024,
            **compacted,
        },
        "vacuum": {
            "seconds": round(vacuuming, 2),
            "deleted_files": len(deleted.files),
            "deleted_bytes": deleted.bytes,
            **vacuumed,
        },
        "refreshes_after": {"count": len(taken), **_summary(taken)},
    }


def _later(days: int) -> RunStamp:
    at = datetime.now(UTC) + timedelta(days=days)
    return RunStamp(f"{at:%Y%m%dT%H%M%S}-{os.getpid():08x}", at)


def main() -> None:
    """Run the benchmark, or a part of it, and write the result once it is complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--refreshes", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--place", type=Path, default=None)
    parser.add_argument("--at-most", type=int, default=1_000_000)
    parser.add_argument("--name", default="upkeep")
    given = parser.parse_args()
    result = {"conditions": conditions(PACKAGES), "load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(given.place or Path(scratch), given.refreshes, given.documents, given.at_most)
    if found is None:
        print("call it again to continue")
        return
    result |= found
    print(json.dumps({name: result[name] for name in ("compact", "vacuum", "refreshes_after")}, indent=1))
    print(f"written to {write_result(given.name, result)}")


if __name__ == "__main__":
    main()
