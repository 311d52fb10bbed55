"""Load on the service: requests per second, latencies and memory, by mode and number of clients.

    python -m benchmarks.service --sizes 10000 100000 1000000 [--workers 1] [--corpora FOLDER]
    python -m benchmarks.service --publishes 20 --workers 4
    python -m benchmarks.service --steady 100000

The service runs as `parquetry serve` on loopback; the clients are one process with one connection each, which share the
machine's cores with it. Queries are drawn anew for each request, so that no answer comes from the cache.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.conditions import RESULTS, conditions, wait_until_idle, write_result
from benchmarks.search_material import Material
from benchmarks.search_synthetic import synthetic
from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import Settings, override
from parquetry.storage.index.space import bring_index
from parquetry.storage.lake.lake import Lake

CLIENTS = (1, 8, 64)
FILTERED = "vector, 40 % visible"
MODES = ("vector", "text", "hybrid", FILTERED)
PACKAGES = ("parquetry", "fastapi", "starlette", "uvicorn", "duckdb", "faiss-cpu", "numpy")
_SEEDS = itertools.count()
"""a seed for each series of requests: the cache would answer those of another series with the same seed"""
_URL = re.compile(r"http://([\w.]+):(\d+)")


class Service:
    """A running `parquetry serve`.

    Args:
        root: corpus.
        workers: processes that answer.
    """

    def __init__(self, root: str, workers: int) -> None:
        command = [sys.executable, "-m", "parquetry.serving.cli.main", "serve", "--corpus", root]
        self._process = subprocess.Popen(
            [*command, "--port", "0", "--workers", str(workers)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        with TokenStore(state_folder(override(Settings(), {"corpus": {"root": root}}))) as tokens:
            self.token = tokens.create("benchmark", org_id="forty")[1]
        self.host, self.port = self._address()
        threading.Thread(target=self._read, daemon=True).start()

    def _address(self) -> tuple[str, int]:
        for line in self._process.stdout or ():
            self.lines.append(line)
            found = _URL.search(line)
            if found:
                return found[1], int(found[2])
        raise SystemExit("the service did not start:\n" + "".join(self.lines))

    def _read(self) -> None:
        self.lines.extend(self._process.stdout or ())

    def memory_mb(self) -> float:
        """Resident memory of all its processes, in MB."""
        processes = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
        return round(sum(each.memory_info().rss for each in processes) / 1e6, 1)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)


@contextmanager
def running(root: str, workers: int) -> Iterator[Service]:
    """Run a service for the block, and wait until it is ready."""
    service = Service(root, workers)
    try:
        deadline = time.monotonic() + 600
        while asyncio.run(_status(service, "/ready")) != 200:
            if time.monotonic() > deadline:
                raise SystemExit("the service is not ready:\n" + "".join(service.lines))
            time.sleep(0.1)
        yield service
    finally:
        service.stop()


async def _status(service: Service, path: str) -> int:
    return (await Connection(service).request("GET", path, None))[0]


class Connection:
    """One connection of a client, kept alive.

    Args:
        service: the service.
        token: token of the client; None for the operator, who sees everything.
    """

    def __init__(self, service: Service, token: str | None = None) -> None:
        self._service = service
        self._authorization = "" if token is None else f"Authorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._service.host, self._service.port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
        writer.write(f"{head}{self._authorization}Content-Type: application/json\r\n\r\n".encode() + content)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        return int(lines[0].split()[1]), await reader.readexactly(int(headers.get("content-length", 0)))


class Questions:
    """Requests drawn from the material of a corpus, each different.

    Args:
        material: the corpus.
        seed: of the random generator.
    """

    def __init__(self, material: Material, seed: int) -> None:
        self._vectors, self._texts = material.array("queries"), material.query_texts()
        self._rng = np.random.default_rng(seed)
        self._words = sorted({word for text in self._texts for word in text.split()})

    def draw(self, mode: str) -> dict[str, Any]:
        """Return the body of a request."""
        words = " ".join(self._words[i] for i in self._rng.integers(0, len(self._words), 4))
        if mode == "text":
            return {"query": words, "top_k": 10, "mode": "text"}
        vector = self._vectors[self._rng.integers(len(self._vectors))]
        noisy = vector + self._rng.normal(0, 0.01, len(vector))
        # The vectors of a synthetic corpus are of no embedder.
        body: dict[str, Any] = {"vector": [round(float(each), 5) for each in noisy], "top_k": 10}
        return {**body, "query": words, "mode": "hybrid"} if mode == "hybrid" else body


async def load(service: Service, material: Material, mode: str, clients: int, requests: int) -> dict[str, Any]:
    """Send requests of one kind; return figures about them."""
    questions, taken, failed = Questions(material, next(_SEEDS)), [], []
    left = requests

    async def client() -> None:
        nonlocal left
        connection = Connection(service, service.token if mode == FILTERED else None)
        while left > 0:
            left -= 1
            body = questions.draw(mode)
            started = time.perf_counter()
            status, content = await connection.request("POST", "/api/v1/knowledge/default/retrieve", body)
            taken.append(time.perf_counter() - started)
            if status != 200 or not json.loads(content)["chunks"]:
                failed.append((status, content[:200].decode("utf-8", "replace")))

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    seconds = time.perf_counter() - started
    ordered = sorted(taken)

    def at(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)

    return {
        "requests": len(taken),
        "requests_per_second": round(len(taken) / seconds, 1),
        "p50_ms": round(1000 * statistics.median(ordered), 2),
        "p95_ms": at(0.95),
        "p99_ms": at(0.99),
        "failed": len(failed),
        "first_failure": failed[0] if failed else None,
    }


def by_mode(service: Service, material: Material, requests: int) -> dict[str, Any]:
    """Measure every mode with every number of clients."""
    found: dict[str, Any] = {}
    for mode in MODES:
        asyncio.run(load(service, material, mode, 1, 50))
        for clients in CLIENTS:
            result = asyncio.run(load(service, material, mode, clients, requests))
            found[f"{mode}, {clients} clients"] = result
            print(f"{mode:20} {clients:3} clients: {json.dumps(result)}", flush=True)
    return found


def steady(service: Service, material: Material, requests: int) -> dict[str, Any]:
    """Send many requests; return the memory of the service along the way."""
    memory = [service.memory_mb()]
    failed = 0
    for _ in range(10):
        failed += asyncio.run(load(service, material, "hybrid", 8, requests // 10))["failed"]
        memory.append(service.memory_mb())
        print(f"memory {memory[-1]} MB", flush=True)
    return {"requests": requests, "memory_mb": memory, "failed": failed}


def publishing(service: Service, material: Material, publishes: int) -> dict[str, Any]:
    """Search while documents are added; return figures about both."""
    ended = threading.Event()
    seconds: list[float] = []

    def publish() -> None:
        for number in range(publishes):
            body = {"documents": [{"text": f"Publish number {number} of this benchmark.", "source": f"n{number}.md"}]}
            started = time.perf_counter()
            status, content = asyncio.run(
                Connection(service).request("POST", "/api/v1/knowledge/default/documents", body)
            )
            seconds.append(time.perf_counter() - started)
            if status != 201:
                raise SystemExit(f"a publish failed: {status} {content[:300]!r}")
        ended.set()

    thread = threading.Thread(target=publish)
    thread.start()
    results = []
    while not ended.is_set() and thread.is_alive():
        results.append(asyncio.run(load(service, material, "hybrid", 8, 200)))
    thread.join()
    return {
        "publishes": publishes,
        "seconds_per_publish": round(statistics.mean(seconds), 3),
        "searches": sum(each["requests"] for each in results),
        "failed": sum(each["failed"] for each in results),
        "p50_ms": statistics.median(each["p50_ms"] for each in results),
        "p99_ms": max(each["p99_ms"] for each in results),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--requests", type=int, default=1_000, help="per mode and number of clients")
    parser.add_argument("--publishes", type=int, default=0)
    parser.add_argument("--steady", type=int, default=0, metavar="REQUESTS")
    parser.add_argument("--corpora", type=Path, help="folder in which corpora are kept between runs")
    parser.add_argument("--max-load", type=float, default=0.8)
    parser.add_argument("--name", default="service")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="service-benchmark-") as scratch:
        for size in options.sizes:
            material = _material((options.corpora or Path(scratch)) / f"synthetic-{size}", size)
            wait_until_idle(options.max_load)
            with running(material.root, options.workers) as service:
                result: dict[str, Any] = {"conditions": conditions(PACKAGES), "workers": options.workers}
                result["memory_mb_at_start"] = service.memory_mb()
                if options.publishes:
                    result["publishing"] = publishing(service, material, options.publishes)
                    print(json.dumps(result["publishing"]), flush=True)
                elif options.steady:
                    result["steady"] = steady(service, material, options.steady)
                else:
                    result["load"] = by_mode(service, material, options.requests)
                result["memory_mb_at_end"] = service.memory_mb()
            kind = "publishing" if options.publishes else "steady" if options.steady else "load"
            print(f"written to {write_result(f'{options.name}-{kind}-{size}', result, RESULTS)}", flush=True)


def _material(folder: Path, size: int) -> Material:
    """Return the corpus of a size, with its index; it is made if it is not there."""
    if (folder / "corpus").exists():
        return Material(folder)
    material = synthetic(folder, size)
    bring_index(Lake(material.root).snapshot(), override(Settings(), {"corpus": {"root": material.root}}).search)
    return material


if __name__ == "__main__":
    main()
