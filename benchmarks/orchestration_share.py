"""Share of Prefect in a refresh of two minutes: without it, on a running server, and with a server of its own.

A server of its own finds the home of an earlier one, as for all refreshes of a user but the first, or creates it.

    python -m benchmarks.orchestration_share
    python -m benchmarks.orchestration_share --folder FOLDER

Without FOLDER, the batches wait for an embedding service on this machine that takes its time, so that the run lasts two
minutes whatever else the machine does. With FOLDER, it lasts as long as its documents take; processor seconds compare.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.conditions import ROOT, conditions, write_result
from benchmarks.process_tree import Measured, measure
from parquetry.flows.orchestration.server import lasting_server, own_server
from tests.servers import embedding_server

PACKAGES = ("parquetry", "prefect", "fastapi")
DIRECT, RUNNING, OWN, FIRST = WAYS = (
    "direct",
    "on a running server",
    "with a server of its own",
    "with a server of its own, in a new home",
)
BATCHES, BATCH_DOCUMENTS, WORKERS = 24, 10, 2


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.scratch)))
        server = stack.enter_context(lasting_server(scratch / "prefect", 0))
        server.wait()
        _make_home(scratch / "cache")
        folder, settings = (
            stack.enter_context(_service(options, scratch)) if not options.folder else (options.folder, "")
        )
        for repetition in range(options.repetitions):
            for way in WAYS:
                state = scratch / f"{repetition}-{way.replace(' ', '-')}"
                state.mkdir()
                (state / "parquetry.toml").write_text(settings, "utf-8")
                cache = (state if way == FIRST else scratch) / "cache"
                measured = _refresh(way, folder.absolute(), state, cache, server.api_url)
                runs[way].append(_row(measured))
                print(way, runs[way][-1], flush=True)
    name = "orchestration-share" + ("-documents" if options.folder else "")
    result = {
        "conditions": conditions(PACKAGES),
        "documents": sum(1 for file in options.folder.rglob("*") if file.is_file())
        if options.folder
        else BATCHES * BATCH_DOCUMENTS,
        "runs": runs,
        "overhead": overhead(runs),
    }
    print(result["overhead"])
    print(f"written to {write_result(name, result, options.results)}")
    return result


def overhead(runs: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return what each way with Prefect adds to the median of the way without it.

    Args:
        runs: way -> measurements of each repetition.

    Returns:
        Way -> added wall seconds and their share of the run without Prefect; the same for processor seconds.
    """
    added = {}
    for way in WAYS[1:]:
        told: dict[str, float] = {}
        for unit in ("wall_seconds", "processor_seconds"):
            base = statistics.median(run[unit] for run in runs[DIRECT])
            more = statistics.median(run[unit] for run in runs[way]) - base
            told |= {unit: round(more, 2), unit.replace("seconds", "share"): round(more / base, 4)}
        added[way] = told
    return added


@contextmanager
def _service(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[Path, str]]:
    """Serve embeddings slowly, and yield a folder of documents and the settings for a refresh."""

    def answer(request: embedding_server.Request) -> embedding_server.Reply:
        time.sleep(options.seconds * WORKERS / BATCHES)
        return embedding_server.embeddings(request)

    folder = scratch / "documents"
    folder.mkdir()
    for number in range(BATCHES * BATCH_DOCUMENTS):
        (folder / f"{number:04}.md").write_text(f"# Rule {number}\n\nCount the boards {number} times.\n", "utf-8")
    with embedding_server.EmbeddingServer(answer) as server:
        yield (
            folder,
            f'[corpus]\nembedder = "openai:test"\n[embedding]\nbase_url = "{server.url}"\napi_key = "key"\n'
            f"dimension = 8\n[refresh]\nbatch_documents = {BATCH_DOCUMENTS}\nworkers = {WORKERS}\n"
            "[extraction]\nworkers = 1\n",
        )


def _make_home(cache: Path) -> None:
    """Let a server of a run create its home in a folder of caches."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    try:
        with own_server() as server:
            server.wait()
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


def _refresh(way: str, folder: Path, state: Path, cache: Path, api_url: str) -> Measured:
    program = [sys.executable, "-c", "from parquetry.serving.cli.main import main; main()", "refresh", str(folder)]
    program += ["--corpus", "corpus", "--json", *(["--direct"] if way == DIRECT else [])]
    environment = {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(state / "home"), "XDG_CACHE_HOME": str(cache)}
    if way == RUNNING:
        environment["PREFECT_API_URL"] = api_url
    measured = measure(program, state, environment)
    if measured.exit_code != 0:
        raise RuntimeError(f"{way} ended with {measured.exit_code}: {measured.errors}")
    return measured


def _row(measured: Measured) -> dict[str, float]:
    return {
        "wall_seconds": round(measured.wall_seconds, 2),
        "processor_seconds": round(measured.processor_seconds, 2),
        "load_before": round(measured.load_before, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="documents that take about two minutes")
    parser.add_argument("--seconds", type=float, default=115.0, help="seconds for which the service makes a run wait")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="where the corpora go")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
