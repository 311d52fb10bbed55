"""Cost and recall of search: ours, exact search by NumPy, and other programs on the same vectors and queries.

    python -m benchmarks.search --sizes 10000 100000 1000000 [--texts FOLDER] [--peers faiss lancedb chroma]

Every contestant runs in a separate process, one after the other, and is measured with its children. Each corpus is
written to the result file when it is done; a later run of the same commit continues with the missing ones.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, ROOT, conditions, wait_until_idle, write_result
from benchmarks.contestants import parquetry
from benchmarks.process_tree import Measured, measure
from benchmarks.search_material import Material, real
from benchmarks.search_synthetic import synthetic
from parquetry.storage.files.layout import layout_of

PEERS = ("faiss", "lancedb", "chroma")
LARGEST = {"chroma": 100_000}
"""chunks above which building a peer's index would take most of the total time"""
PACKAGES = ("parquetry", "duckdb", "numpy", "pyarrow", "deltalake", "faiss-cpu")
_PEER_SCRIPTS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True)
class Step:
    """One process of one contestant."""

    contestant: str
    name: str
    command: Sequence[str]


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    deadline = time.monotonic() + 60 * options.minutes
    now = conditions(PACKAGES)
    corpora = _earlier(options, now["commit"])
    wanted = [f"synthetic {size}" for size in options.sizes] + (
        [f"texts {options.texts.name}"] if options.texts else []
    )
    for name in wanted:
        if name in corpora:
            print(f"{name}: measured before at this commit")
        elif time.monotonic() > deadline:
            print(f"{name}: no time left; run again to go on")
        else:
            corpora[name] = {"conditions": now, **_corpus(name, options, deadline)}
            print(f"written to {write_result(options.name, {'corpora': corpora}, options.results)}", flush=True)
    return corpora


def _earlier(options: argparse.Namespace, commit: str) -> dict[str, Any]:
    """Return the results in the result file for this commit."""
    file = options.results / f"{options.name}.json"
    if options.again or not file.exists():
        return {}
    corpora = json.loads(file.read_text("utf-8"))["corpora"]
    return {name: result for name, result in corpora.items() if result["conditions"]["commit"] == commit}


def _corpus(name: str, options: argparse.Namespace, deadline: float) -> dict[str, Any]:
    """Create a corpus and let all contestants search it, one after the other."""
    with tempfile.TemporaryDirectory(prefix="search-benchmark-", dir=options.scratch) as scratch:
        started = time.monotonic()
        material = _kept(name, options, Path(scratch)) or _material(name, options, Path(scratch))
        facts = {**material.facts, "seconds_to_make": round(time.monotonic() - started, 1)}
        print(f"{name}: {facts['chunks']} chunks of {facts['documents']} documents", flush=True)
        if options.corpora is None:
            # A refresh leaves an index; our build is timed from scratch.
            shutil.rmtree(layout_of(material.root).index, ignore_errors=True)
        contestants: dict[str, dict[str, Any]] = {}
        for step in _steps(material, options):
            wait_until_idle(options.max_load)
            result = run_step(step, facts["chunks"], deadline - time.monotonic())
            contestants.setdefault(step.contestant, {})[step.name] = result
            _show(step, result)
        return {"corpus": facts, "contestants": contestants}


def _kept(name: str, options: argparse.Namespace, scratch: Path) -> Material | None:
    """Return a copy of a corpus that an earlier run has kept, with its index; None if there is none."""
    if options.corpora is None:
        return None
    kept = Material(options.corpora / name.rpartition(" ")[2])
    if not kept.complete:
        raise SystemExit(f"{kept.folder} has no complete corpus")
    shutil.copytree(kept.folder, scratch / "material")
    return Material(scratch / "material")


def _material(name: str, options: argparse.Namespace, scratch: Path) -> Material:
    kind, _, which = name.partition(" ")
    if kind == "synthetic":
        return synthetic(scratch / "material", int(which))
    state = scratch / "state"
    state.mkdir()
    parquetry().refresh(options.texts.absolute(), state)
    return real(scratch / "material", state / "corpus")


def _steps(material: Material, options: argparse.Namespace) -> Iterator[Step]:
    folder = str(material.folder)
    yield Step("numpy", "query", [sys.executable, str(_PEER_SCRIPTS / "numpy_search.py"), folder])
    for name in ("build", "query", "memory"):
        yield Step("parquetry", name, [sys.executable, "-m", "benchmarks.search_ours", name, folder])
    for peer in options.peers:
        yield Step(peer, "query", [options.peers_python, str(_PEER_SCRIPTS / f"{peer}_search.py"), folder])
    if material.facts["kind"] == "synthetic":
        # Last, because it changes documents, and with them the ground truth.
        yield Step("parquetry", "refresh", [sys.executable, "-m", "benchmarks.search_ours", "refresh", folder])


def run_step(step: Step, chunks: int, seconds: float) -> dict[str, Any]:
    """Run a step; return its report and resource use, or the reason for their absence.

    Args:
        step: step to run.
        chunks: number of chunks in the corpus.
        seconds: time limit.
    """
    largest = LARGEST.get(step.contestant)
    if largest is not None and chunks > largest:
        return {"left_out": f"more than {largest} chunks"}
    if seconds <= 0:
        return {"left_out": "no time left"}
    measured = measure(step.command, ROOT, timeout_seconds=seconds)
    if measured.exit_code < 0:
        return {"left_out": f"not done after {seconds:.0f} s"}
    if measured.exit_code != 0:
        return {"left_out": f"ended with {measured.exit_code}: {measured.errors.strip().rpartition(chr(10))[2]}"}
    return {**json.loads(measured.output.strip().splitlines()[-1]), **_process(measured)}


def _process(measured: Measured) -> dict[str, Any]:
    return {
        "wall_seconds": measured.wall_seconds,
        "processor_seconds": measured.processor_seconds,
        "peak_pss_mb": measured.peak_pss_mb,
        "load_before": measured.load_before,
    }


def _show(step: Step, result: dict[str, Any]) -> None:
    if "left_out" in result:
        print(f"  {step.contestant} {step.name}: left out, {result['left_out']}", flush=True)
        return
    seconds = ("load_seconds", "build_seconds", "filter_index_seconds", "refresh_seconds", "memory_seconds")
    names = (*seconds, "bytes", "peak_pss_mb")
    print(
        f"  {step.contestant} {step.name}: " + ", ".join(f"{name} {result[name]}" for name in names if name in result)
    )
    for row in result.get("rows", ()):
        recall = "" if row["recall@10"] is None else f"recall@10 {row['recall@10']:.3f}"
        times = f"p50 {row['p50_ms']:8.2f} ms  p95 {row['p95_ms']:8.2f} ms  processor {row['processor_p50_ms']:8.2f} ms"
        print(f"    {row['what']:<22} {times}  {recall}  {row['setting']}", flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="chunks of the synthetic corpora")
    parser.add_argument("--texts", type=Path, help="a folder of documents, refreshed and searched as they are")
    parser.add_argument("--peers", nargs="*", default=[], choices=PEERS)
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter of an environment with the peers")
    parser.add_argument("--minutes", type=float, default=15, help="after which nothing is begun and all is ended")
    parser.add_argument("--again", action="store_true", help="measure what this commit has in the result file, too")
    parser.add_argument("--max-load", type=float, help="wait before each process until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where corpora and indexes go, 8 GB for a million chunks")
    parser.add_argument("--corpora", type=Path, help="folder of corpora with indexes, by size, which are copied")
    parser.add_argument("--name", default="search", help="of the result file")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
