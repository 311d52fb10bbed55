"""Processor seconds of a refresh of a folder of PDFs by stage; they add up to the total.

    python -m benchmarks.refresh_stages FOLDER

A refresh of everything in a process of its own whose steps are timed. Steps that follow one another count all threads
of the process, those of batches only their own thread; what is left of the batches is what threads do for the
extraction processes, and what DuckDB and PyArrow do in threads of theirs.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.process_tree import measure

PACKAGES = ("parquetry", "pypdfium2", "pypdf", "pyarrow", "deltalake", "duckdb", "wordllama", "numpy")
_PROGRAM = "from benchmarks.refresh_stages import timed_refresh; timed_refresh()"
_IN_BATCHES = ("fetch", "extract", "embed", "store")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.refresh_stages", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="a folder of PDFs")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent), "PYTHONDONTWRITEBYTECODE": ""}
    with tempfile.TemporaryDirectory(prefix="refresh-stages-") as scratch:
        command = [sys.executable, "-c", _PROGRAM, str(options.folder.absolute())]
        measured = measure(command, Path(scratch), environment)
    if measured.exit_code != 0:
        raise RuntimeError(f"the refresh ended with {measured.exit_code}: {measured.errors}")
    told = json.loads(measured.output.strip().splitlines()[-1])
    stages = by_stage(told["spent"], told["total"], measured.processor_seconds - measured.own_processor_seconds)
    result = {
        "conditions": conditions(PACKAGES),
        "wall_seconds": measured.wall_seconds,
        "peak_pss_mb": measured.peak_pss_mb,
        "embedded": told["embedded"],
        "processor_seconds": stages,
        "total": round(sum(stages.values()), 2),
    }
    for stage, seconds in stages.items():
        print(f"{stage:<40} {seconds:7.2f}")
    print(f"written to {write_result('refresh-stages', result, options.results)}")
    return result


def by_stage(spent: dict[str, float], total: float, processes: float) -> dict[str, float]:
    """Return processor seconds by stage.

    Args:
        spent: as `timed_refresh` measures them.
        total: processor seconds of the program's own process.
        processes: processor seconds of its extraction processes, with their server.
    """
    batches = spent.pop("batches")
    rest = batches - sum(spent.get(stage, 0.0) for stage in _IN_BATCHES)
    stages = {**spent, "batches: messages, threads of libraries": rest}
    stages["the rest"] = total - sum(stages.values())
    stages["extraction processes"] = processes
    return {stage: round(seconds, 2) for stage, seconds in stages.items()}


def timed_refresh() -> None:
    """Refresh the folder in the first argument into the working folder; print processor seconds as one JSON line."""
    from parquetry.flows.pipelines import documents, pipeline
    from parquetry.flows.pipelines.observer import Observer
    from parquetry.settings.sections import CorpusSettings, Settings
    from parquetry.storage.without_pandas import use_without_pandas
    from parquetry.tasks.documents.batch_stats import BatchStats
    from parquetry.tasks.engine.base import DirectEngine

    use_without_pandas()
    spent: defaultdict[str, float] = defaultdict(float, {"start and imports": time.process_time()})

    def timed(owner: Any, name: str, stage: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(function)
        def run(*arguments: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                spent[stage] += time.process_time() - started

        setattr(owner, name, run)

    whole = BatchStats.stage

    @contextmanager
    def stage_of_batch(stats: BatchStats, name: str) -> Iterator[None]:
        started = time.thread_time()
        with whole(stats, name):
            yield
        spent[name] += time.thread_time() - started

    timed(documents._Refresh, "plan", "plan")
    timed(documents._Refresh, "process", "batches")
    timed(documents._Refresh, "publish", "publish")
    timed(pipeline, "record", "record")
    timed(pipeline, "refresh_index", "index")
    BatchStats.stage = stage_of_batch  # type: ignore[method-assign, assignment]
    request = documents.Request(Settings(corpus=CorpusSettings(root="corpus")), (sys.argv[1],))
    report = documents.run_refresh(request, DirectEngine(), Observer())
    if report.error is not None:
        raise report.error
    print(json.dumps({"spent": spent, "total": time.process_time(), "embedded": report.work.chunks_embedded}))


if __name__ == "__main__":
    main()
