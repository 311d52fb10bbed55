"""Prefect's share of a run that waits two minutes for its embedding service.

    python -m benchmarks.orchestration_share

The same documents, one to a batch, are refreshed in the process itself, by Prefect with a server that runs anyway, and
by Prefect with a server for this run alone. The embedding service answers each request after a fixed time. Processor
seconds are of the command and its children; on a busy machine they say more than wall seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.conditions import conditions, write_result
from benchmarks.process_tree import measure
from parquetry.flows.orchestration.server import lasting_server
from tests.servers.embedding_server import EmbeddingServer, Reply, Request, embeddings

WORKERS = 4
"""batches at a time"""
PROGRAM = [sys.executable, "-c", "from parquetry.serving.cli.main import main; main()", "refresh"]
WAYS: Mapping[str, tuple[list[str], bool]] = {
    "direct": (["--direct"], False),
    "prefect, server running": ([], True),
    "prefect, server for this run": ([], False),
}
"""way -> options, and True if the API of the running server is named"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    rounds = options.documents / WORKERS
    result: dict[str, Any] = {
        "conditions": conditions(("parquetry", "prefect", "fastapi")),
        "documents": options.documents,
        "batches": options.documents,
        "seconds_of_waiting": options.seconds,
        "runs": {},
    }
    with tempfile.TemporaryDirectory(prefix="share-benchmark-") as scratch, _service(options.seconds / rounds) as url:
        folder = Path(scratch)
        (folder / "docs").mkdir()
        for number in range(options.documents):
            (folder / "docs" / f"{number}.md").write_text(f"# Rule {number}\n\nCount the boards {number} times.\n")
        with lasting_server(folder / "server", 0) as server:
            server.wait()
            process = psutil.Process(server.pid)
            for way, (more, running) in WAYS.items():
                _write_settings(folder, way, url)
                api = {"PREFECT_API_URL": server.api_url} if running else {}
                before, at = _processor_seconds(process), time.perf_counter()
                measured = measure([*PROGRAM, "--config", f"{way}.toml", *more], folder, api)
                if measured.exit_code != 0:
                    raise RuntimeError(f"{way}: {measured.errors}")
                server_seconds = (_processor_seconds(process) - before) if running else 0.0
                result["runs"][way] = {
                    "wall_seconds": round(time.perf_counter() - at, 2),
                    "processor_seconds": round(measured.processor_seconds, 2),
                    "of_the_running_server": round(server_seconds, 2),
                    "load_before": measured.load_before,
                    "load_after": os.getloadavg()[0],
                }
                print(way, result["runs"][way], flush=True)
    result["added"] = added(result["runs"], options.seconds)
    print(result["added"])
    print(f"written to {write_result('orchestration-share', result, options.results)}")
    return result


def added(runs: Mapping[str, Mapping[str, float]], seconds: float) -> dict[str, dict[str, float]]:
    """Return what Prefect adds to the direct run, and its share of the seconds of waiting.

    Args:
        runs: way -> figures.
        seconds: seconds that each run waits for the service.
    """
    direct = runs["direct"]
    found = {}
    for way, run in runs.items():
        if way != "direct":
            more = run["processor_seconds"] + run["of_the_running_server"] - direct["processor_seconds"]
            wall = run["wall_seconds"] - direct["wall_seconds"]
            found[way] = {
                "processor_seconds": round(more, 2),
                "processor_share": round(more / seconds, 3),
                "wall_seconds": round(wall, 2),
                "wall_share": round(wall / direct["wall_seconds"], 3),
            }
    return found


@contextmanager
def _service(seconds: float) -> Iterator[str]:
    """Serve embeddings, each request after so many seconds."""

    def answer(request: Request) -> Reply:
        time.sleep(seconds)
        return embeddings(request)

    with EmbeddingServer(answer) as server:
        yield server.url


def _write_settings(folder: Path, way: str, url: str) -> None:
    text = f'[corpus]\nroot = "{way}"\nembedder = "openai:m"\n[extraction]\nworkers = 1\n'
    text += f"[refresh]\nbatch_documents = 1\nworkers = {WORKERS}\n"
    text += f'[embedding]\nbase_url = "{url}"\napi_key = "sk-none"\ndimension = 8\n'
    (folder / f"{way}.toml").write_text(f'{text}[[source]]\nname = "docs"\nuri = "docs"\n', "utf-8")


def _processor_seconds(process: psutil.Process) -> float:
    """Return user and system seconds of a process and its children."""
    family = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in family)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orchestration_share")
    parser.add_argument("--documents", type=int, default=48)
    parser.add_argument("--seconds", type=float, default=120, help="what each run waits for the service")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
