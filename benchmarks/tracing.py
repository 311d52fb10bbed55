"""Processor time of a search with traces and metrics off and on, in turns, in one process.

    python -m benchmarks.tracing

Spans and metrics go to a collector on this machine that throws them away, in a process of its own. The time of the
threads that send them counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.observability import ObservabilitySettings
from parquetry.settings.sections import Settings, parse_settings
from parquetry.tasks.engine.base import DirectEngine
from parquetry.telemetry import tracing

PACKAGES = ("parquetry", "opentelemetry-sdk", "duckdb")
WOODS = ("ash", "beech", "oak", "elm", "larch", "fir", "maple", "cherry", "walnut", "lime")
_COLLECTOR = """
import http.server
class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_port, flush=True)
server.serve_forever()
"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    milliseconds: dict[str, list[float]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory() as folder, _collector() as url:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
        settings = _corpus(Path(folder), options.documents)
        tracing.start_tracing(ObservabilitySettings(otel=True))
        sender = tracing._pipeline
        load = os.getloadavg()[0]
        with Reader(settings) as reader:
            for turn in range(-1, options.turns):
                for state in milliseconds:
                    tracing._pipeline = sender if state == "on" else None
                    taken = _searches(reader, options.searches, turn)
                    if turn >= 0:
                        milliseconds[state].append(round(taken, 3))
        lost = sender.take_lost() if sender else 0
    medians = {state: round(statistics.median(each), 3) for state, each in milliseconds.items()}
    result = {
        "conditions": conditions(PACKAGES),
        "documents": options.documents,
        "searches_per_turn": options.searches,
        "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
        "processor_milliseconds": milliseconds,
        "medians": medians,
        "exports_lost": lost,
    }
    print(medians, "lost", lost)
    print(f"written to {write_result('tracing', result, options.results)}")
    return result


@contextmanager
def _collector() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", _COLLECTOR], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def _corpus(folder: Path, documents: int) -> Settings:
    (folder / "docs").mkdir()
    for number in range(documents):
        wood = WOODS[number % len(WOODS)]
        (folder / "docs" / f"{number}.md").write_text(
            f"# {wood} {number}\n\nBoards of {wood} are planed {number} times."
        )
    settings = parse_settings(
        {
            "corpus": {"root": str(folder / "kb")},
            "extraction": {"workers": 1},
            "source": [{"name": "docs", "uri": str(folder / "docs")}],
        },
        "benchmark",
    )
    run_refresh(Request(settings), DirectEngine(), Observer())
    return settings


def _searches(reader: Reader, count: int, turn: int) -> float:
    """Return the mean processor time of searches in milliseconds; their queries differ, so that none is cached."""
    started = time.process_time()
    for number in range(count):
        state = "on" if tracing.is_on() else "off"
        reader.search(SearchRequest(f"boards of {WOODS[number % len(WOODS)]} planed {turn} {number} {state}"))
    tracing.flush()
    return (time.process_time() - started) / count * 1000


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--searches", type=int, default=60)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
