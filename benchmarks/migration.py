"""Migration of a folder of documents to another embedder while a service is searched: searches, seconds, bytes.

    python -m benchmarks.migration FOLDER [--workers 1] [--results FOLDER]

FOLDER is refreshed with the bundled embedder. Then `parquetry serve` is searched all the time by two clients, one by
vectors and one hybrid, while `parquetry reindex` builds and switches in processes of their own. The new embedder is a
service on loopback that answers with 384 numbers drawn from each text: what is measured is the migration, and not a
model. Compaction and vacuum run as they would 40 days later.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from benchmarks.conditions import RESULTS, conditions, write_result
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.planning.rows import RunStamp
from parquetry.serving.cli.progress import Observer
from parquetry.settings.retention import RetentionSettings
from parquetry.settings.sections import Settings, load_settings
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.vacuum import vacuum
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.embedding_server import EmbeddingServer, embeddings

PACKAGES = ("parquetry", "deltalake", "duckdb", "pyarrow", "fastapi", "uvicorn")
DIMENSION = 384
QUIET_SECONDS = 10.0
"""seconds of searches before and after"""
QUESTIONS = ("install the package", "page layout", "fonts and symbols", "an error message", "tables and figures")
_LOG = "service.log"
_URL = re.compile(r"http://[\w.]+:\d+")
_PROGRAM = (sys.executable, "-m", "parquetry.serving.cli.main")


class Searches:
    """Clients that search a service all the time, and the seconds of each answer by phase."""

    def __init__(self, url: str) -> None:
        self.phase = "before"
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failures: list[str] = []
        self._url, self._over = url, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(mode,)) for mode in ("vector", "hybrid")]
        for thread in self._threads:
            thread.start()

    def _ask(self, mode: str) -> None:
        number = 0
        with httpx.Client(base_url=self._url, timeout=120, trust_env=False) as client:
            while not self._over.is_set():
                number += 1
                # Different each time, so that no answer is from the cache.
                query = f"{QUESTIONS[number % len(QUESTIONS)]} {mode} {number}"
                phase, started = self.phase, time.perf_counter()
                answer = client.post("/api/v1/knowledge/default/retrieve", json={"query": query, "mode": mode})
                self.seconds[phase].append(time.perf_counter() - started)
                if answer.status_code != 200 or not answer.json()["chunks"]:
                    self.failures.append(f"{phase}: {answer.status_code} {answer.text[:200]}")

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def summary(self) -> dict[str, Any]:
        """Return the number of searches and their milliseconds by phase."""
        return {
            phase: {
                "searches": len(each),
                "ms_median": round(1000 * statistics.median(each), 1),
                "ms_p95": round(1000 * sorted(each)[int(0.95 * (len(each) - 1))], 1),
                "ms_max": round(1000 * max(each), 1),
            }
            for phase, each in self.seconds.items()
        }


def measure(folder: Path, scratch: Path, workers: int) -> dict[str, Any]:
    """Refresh, serve, migrate, compact."""
    with EmbeddingServer(partial(embeddings, dimension=DIMENSION)) as server:
        (scratch / "parquetry.toml").write_text(
            f'[corpus]\nroot = "corpus"\n[embedding]\nbase_url = "{server.url}"\nprice_per_million_tokens = 0\n'
            f'[[source]]\nname = "docs"\nuri = {json.dumps(str(folder))}\n'
        )
        settings = load_settings(scratch / "parquetry.toml")
        started = time.perf_counter()
        run_refresh(Request(settings), DirectEngine(), Observer())
        result: dict[str, Any] = {"refresh_seconds": round(time.perf_counter() - started, 1), **_counts(settings)}
        command = [*_PROGRAM, "serve", "--port", "0", "--workers", str(workers)]
        with (scratch / _LOG).open("w") as log:
            service = subprocess.Popen(command, cwd=scratch, stdout=log, stderr=subprocess.STDOUT)
        try:
            result |= _migrate(scratch, server)
        finally:
            service.terminate()
            service.wait(60)
        sent = Counter(text for request in server.requests for text in request.inputs if len(text) > 60)
        result["texts"] = {"embedded": sum(sent.values()), "embedded_twice": sum(each - 1 for each in sent.values())}
    return result | _upkeep(settings)


def _migrate(scratch: Path, server: EmbeddingServer) -> dict[str, Any]:
    while (found := _URL.search((scratch / _LOG).read_text())) is None:
        time.sleep(0.1)
    url = found[0]
    while httpx.get(f"{url}/ready", trust_env=False).status_code != 200:
        time.sleep(0.1)
    searches = Searches(url)
    time.sleep(QUIET_SECONDS)
    searches.phase = "build"
    build = _command(scratch, "--embeddings-only", "--embedder", "openai:drawn")
    searches.phase = "switch"
    switch = _command(scratch, "--switch")
    asked, started = len(server.requests), time.perf_counter()
    while len(server.requests) == asked:
        time.sleep(0.01)
    followed = time.perf_counter() - started
    searches.phase = "after"
    time.sleep(QUIET_SECONDS)
    searches.stop()
    return {
        "build": build,
        "switch": switch,
        "seconds_from_the_end_of_the_command_to_the_first_query_of_the_new_model": round(followed, 2),
        "searches": searches.summary(),
        "failed_searches": len(searches.failures),
        "failures": searches.failures[:5],
    }


def _command(scratch: Path, *arguments: str) -> dict[str, Any]:
    started = time.perf_counter()
    done = subprocess.run(
        [*_PROGRAM, "reindex", "--direct", *arguments, "--json"],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)
    names = ("version", "documents", "chunks", "bytes_read")
    return {"seconds": round(time.perf_counter() - started, 1), **{name: report[name] for name in names}}


def _counts(settings: Settings) -> dict[str, Any]:
    rows = current_rows(Lake(settings.corpus.root).snapshot())
    return {
        "documents": len(rows),
        "chunks_visible": sum(row.chunks for row in rows),
        "embedders": sorted({row.embedder or "" for row in rows if row.revision}),
        "mb": _megabytes(settings),
    }


def _megabytes(settings: Settings) -> dict[str, float]:
    root = Path(settings.corpus.root)
    return {
        name: round(sum(file.stat().st_size for file in (root / name).rglob("*") if file.is_file()) / 1e6, 1)
        for name in ("texts", "chunks", "index")
    }


def _upkeep(settings: Settings) -> dict[str, Any]:
    migrated, lake = _counts(settings), Lake(settings.corpus.root, create=True)
    retention = RetentionSettings(days=1, versions=1)
    started = time.perf_counter()
    compact(lake, retention, settings.search, _later(40))
    compacting = time.perf_counter() - started
    vacuum(lake, retention, _later(42))
    return {"migrated": migrated, "compact_seconds": round(compacting, 1), "after_vacuum": _counts(settings)}


def _later(days: int) -> RunStamp:
    at = datetime.now(UTC) + timedelta(days=days)
    return RunStamp(f"{at:%Y%m%dT%H%M%S}-{os.getpid():08x}", at)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    os.environ.setdefault("OPENAI_API_KEY", "loopback")
    result = {"conditions": conditions(PACKAGES), "load_before": os.getloadavg()[0], "workers": given.workers}
    with tempfile.TemporaryDirectory() as scratch:
        result |= measure(given.folder.resolve(), Path(scratch), given.workers)
    result["load_after"] = os.getloadavg()[0]
    print(json.dumps(result, indent=1))
    print(f"written to {write_result('migration', result, given.results)}")


if __name__ == "__main__":
    main()
