"""Times of the dashboard's views over 100,000 documents: on the server, and until a browser paints.

    python -m benchmarks.dashboard [--documents 100000] [--corpus FOLDER] [--views overview documents ...]

The corpus is written straight into the lake, without extraction: random words, vectors around those of 60 topics, each
twentieth document a changed copy of the one before, each hundredth a whole copy. It is analyzed before. The service
runs as `parquetry serve` with one worker on loopback. Views are asked in turns, so that what else the machine does hits
all of them. Times are those of a client on the same machine, from the request to the last byte; beside them stand the
processor seconds of the service's processes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from benchmarks.conditions import conditions, write_result
from parquetry import ids
from parquetry.embed.registry import open_embedder
from parquetry.model import Access, Chunk, DocumentRow, Extraction, Part
from parquetry.planning.rows import RunStamp, blank_row
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.settings.sections import SearchSettings
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.files.layout import shard_name
from parquetry.storage.index.space import bring_index
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.shards import RevisionChunks, StoredText, stored_text, write_chunks, write_texts

RESULT = "dashboard"
_PACKAGES = ("parquetry", "duckdb", "fastapi", "jinja2", "playwright")
_CHUNKS = 3
"""chunks of a document"""
_SHARD = 10_000
"""documents of a shard"""
_STAMP = RunStamp("benchmark", datetime(2031, 3, 1, tzinfo=UTC))
_TYPES = ("text/markdown", "application/pdf", "text/html", "text/plain", "image/png")
_SOURCES = ("handbook", "wiki", "contracts", UPLOADS)
_NAMESPACES = ("default", "default", "default", "research")
_WORDS = 20_000
"""different words of the texts, drawn with frequencies as in a natural language"""
_TOPICS = 60
"""subjects of the texts, around whose vectors those of documents stand"""
_URL = re.compile(r"http://[\w.]+:\d+")


@dataclass(frozen=True, slots=True)
class Scene:
    """Parts of the paths of views."""

    documents: Sequence[str]
    """ids"""
    words: Sequence[str]
    """words of the texts, most frequent first"""


View = Callable[[Scene, int], str]
"""scene and number of a request -> path; no two requests of a view should have one answer"""
VIEWS: Mapping[str, View] = {
    "overview": lambda _, __: "/",
    "documents": lambda _, n: f"/documents?page={n % 50 + 1}",
    "documents, by name": lambda _, n: f"/documents?sort=name&page={n % 50 + 1}",
    "documents, last page": lambda scene, n: f"/documents?page={len(scene.documents) // 50 - n % 50}",
    "documents, part of a name": lambda scene, n: f"/documents?q={scene.words[500 + n]}",
    "documents, failed": lambda _, n: f"/documents?status=failed&page={n % 20 + 1}",
    "document": lambda scene, n: f"/documents/{scene.documents[(n * 977 + 1) % len(scene.documents)]}",
    "document, its history": lambda scene, n: (
        f"/documents/{scene.documents[(n * 977 + 1) % len(scene.documents)]}/history"
    ),
    "document, to be deleted": lambda scene, n: (
        f"/documents/{scene.documents[(n * 977 + 1) % len(scene.documents)]}/delete"
    ),
    "add": lambda _, __: "/add",
    "search, empty": lambda _, __: "/search",
    "search": lambda scene, n: f"/search?q={scene.words[40 + n]}+{scene.words[900 + 7 * n]}",
    "search, words": lambda scene, n: f"/search?mode=text&q={scene.words[40 + n]}+{scene.words[900 + 7 * n]}",
    "search, explained": lambda scene, n: f"/search?explain=1&q={scene.words[40 + n]}+{scene.words[900 + 7 * n]}",
    "search, compared": lambda scene, n: (
        f"/search/compare?mode=hybrid&mode2=text&q={scene.words[40 + n]}+{scene.words[900 + 7 * n]}"
    ),
    "ask": lambda _, __: "/ask",
    "entries": lambda _, __: "/entries",
    "runs": lambda _, __: "/runs",
    "versions": lambda _, __: "/runs/versions",
    "version": lambda _, __: "/runs/versions/1",
    "version, to be restored": lambda _, __: "/runs/versions/1/restore",
    "plan": lambda _, __: "/runs/plan",
    "reviews": lambda _, __: "/entries/reviews",
    "map": lambda _, n: f"/map?cluster={n % 24}",
    "map, an area": lambda _, n: f"/map?area=0.{n % 8},0.{n % 7},0.{n % 8 + 1},0.{n % 7 + 2}",
    "map, its points": lambda _, __: "/map/points",
    "map, a point": lambda scene, n: f"/map/documents/{scene.documents[(n * 977 + 1) % len(scene.documents)]}",
    "quality": lambda _, __: "/quality",
    "quality, near-duplicates": lambda _, n: f"/quality?list=near-duplicates&page={n % 20 + 1}",
    "quality, duplicates": lambda _, n: f"/quality?list=duplicates&page={n % 20 + 1}",
    "tokens": lambda _, __: "/admin",
    "audit": lambda _, __: "/admin/audit",
    "settings": lambda _, __: "/admin/settings",
    "sign-in": lambda _, __: "/sign-in",
}
"""name -> view; others are added here"""
_DATA = frozenset({"map, its points", "map, a point"})
"""paths that scripts ask for, and no browser shows as a page"""


def build(root: Path, documents: int) -> Scene:
    """Write a corpus, its index and its analysis; return the parts of paths."""
    started = time.monotonic()
    scene = write(root, documents)
    snapshot = Lake(str(root)).snapshot()
    bring_index(snapshot, SearchSettings())
    print(f"index built, {time.monotonic() - started:.0f} s", flush=True)
    analyze(snapshot, SearchSettings())
    print(f"analyzed, {time.monotonic() - started:.0f} s", flush=True)
    return scene


def write(root: Path, documents: int, stamp: RunStamp = _STAMP, seed: int = 0) -> Scene:
    """Write a corpus, or the first documents of one again; return the parts of paths.

    Args:
        root: its root.
        documents: number of documents.
        stamp: the run that publishes them.
        seed: other ones give the documents other texts.
    """
    words = _words(np.random.default_rng(0))
    rng = np.random.default_rng(seed + 1)
    embedder = open_embedder("wordllama", EmbeddingSettings()).id
    dimension = int(embedder.rpartition("@")[2])
    lake = Lake(str(root), create=True)
    rows: list[DocumentRow] = []
    started = time.monotonic()
    for first in range(0, documents, _SHARD):
        numbers = range(first, min(documents, first + _SHARD))
        drawn = _drawn(numbers, len(words), rng)
        made = [_document(number, words, each, embedder, stamp) for number, each in zip(numbers, drawn, strict=True)]
        whole = [each for each in made if each[0].revision]
        means = _vectors(numbers, drawn, dimension, rng)[[bool(row.revision) for row, _, _ in made]]
        vectors = np.repeat(means, _CHUNKS, axis=0)
        vectors += rng.normal(size=vectors.shape).astype(np.float32) / 64
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        name = shard_name(stamp.run_id, first // _SHARD)
        lake.register(
            (
                write_texts(lake.layout, name, [text for _, text, _ in whole], embedder, means),
                write_chunks(lake.layout, name, [chunks for _, _, chunks in whole], embedder, vectors),
            ),
            stamp.run_id,
        )
        rows += [row for row, _, _ in made]
        print(f"{len(rows):,} documents written, {time.monotonic() - started:.0f} s", flush=True)
    lake.publish(lake.snapshot(), rows, stamp.run_id)
    return Scene([row.document_id for row in rows if row.revision], words)


def _words(rng: np.random.Generator) -> list[str]:
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    found = {"".join(rng.choice(syllables, 1 + size % 4 + 1)) for size in range(3 * _WORDS)}
    return sorted(found)[:_WORDS]


def _changed_words(number: int) -> int | None:
    """Return the number of words in which a document differs from the one before; None if it is a text of its own."""
    if number % 100 == 13:
        return 0
    return 1 + number // 20 % 40 if number % 20 == 7 else None


def _drawn(numbers: range, words: int, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """Return the words of documents."""
    found: list[np.ndarray[Any, Any]] = []
    for number in numbers:
        drawn = np.minimum(rng.zipf(1.3, 60 * _CHUNKS) - 1, words - 1)
        changed = _changed_words(number)
        if changed is not None and found:
            drawn = found[-1].copy()
            drawn[rng.choice(len(drawn), changed, replace=False)] = rng.integers(0, words, changed)
        found.append(drawn)
    return found


def _vectors(
    numbers: range, drawn: Sequence[np.ndarray[Any, Any]], dimension: int, rng: np.random.Generator
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return vectors of documents around those of topics; texts that differ little have vectors that do."""
    topics = np.random.default_rng(1).normal(size=(_TOPICS, dimension))
    found = topics[rng.integers(0, _TOPICS, len(numbers))] + 1.6 * rng.normal(size=(len(numbers), dimension))
    for place, number in enumerate(numbers):
        changed = _changed_words(number)
        if changed is not None and place:
            found[place] = found[place - 1] + 3 * changed / len(drawn[place]) * rng.normal(size=dimension)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found.astype(np.float32)


def _document(
    number: int, words: Sequence[str], drawn: np.ndarray[Any, Any], embedder: str, stamp: RunStamp
) -> tuple[DocumentRow, StoredText, RevisionChunks]:
    namespace, source = _NAMESPACES[number % 4], _SOURCES[number // 4 % 4]
    chunks = [" ".join(words[word] for word in part) for part in np.split(drawn, _CHUNKS)]
    text = "\n".join(chunks)
    filename = f"{words[drawn[0]]}-{words[(number * 7919) % len(words)]}-{number}.md"
    path = f"{number % 300:03}/{filename}"
    identity = ids.document_id(namespace, source, path)
    status = "failed" if number % 50 == 49 else "indexed"
    revision = ids.revision(identity, stamp.run_id) if status == "indexed" else 0
    spans, start = [], 0
    for index, chunk in enumerate(chunks if revision else ()):
        spans.append(Chunk(index, start, start + len(chunk), "page", index + 1, ("Heading",)))
        start += len(chunk) + 1
    parts = (Part(0, len(text), "page", 1, None, "text"),)
    extraction = Extraction(text, parts, (), None, {}, "text/markdown", "benchmark/1")
    blank = blank_row(stamp)
    created = stamp.at - timedelta(minutes=number)
    fields: dict[str, Any] = {name: getattr(blank, name) for name in DocumentRow.__slots__}
    fields |= {
        "document_id": identity,
        "namespace": namespace,
        "source": source,
        "path": path,
        "uri": f"file:///docs/{path}",
        "filename": filename,
        "title": " ".join(words[word] for word in drawn[:4]).capitalize(),
        "media_type": _TYPES[number % len(_TYPES)],
        "size": len(text) * 9,
        "etag": str(number),
        "content_hash": ids.content_hash(text.encode()),
        "revision": revision,
        "status": status,
        "error": None if revision else "extract/damaged: not a whole file of its type",
        "extractor": "benchmark/1",
        "embedder": embedder,
        "characters": len(text),
        "chunks": len(spans),
        "tokens": 80 * len(spans),
        "access": Access(tags=("even",) if number % 2 == 0 else ()),
        "metadata": {"author": words[number % 500]},
        "created_at": created,
        "modified_at": created,
    }
    hashes = [ids.text_hash(chunk) for chunk in chunks[: len(spans)]]
    written = RevisionChunks(revision, spans, chunks[: len(spans)], [80] * len(spans), hashes)
    return DocumentRow(**fields), stored_text(revision, extraction), written


class Service:
    """A running `parquetry serve` over a corpus.

    Args:
        root: the corpus.
    """

    def __init__(self, root: Path) -> None:
        command = [sys.executable, "-m", "parquetry.serving.cli.main", "serve", "--corpus", str(root), "--port", "0"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root.parent
        )
        lines = iter(self._process.stdout or ())
        self.url = next(found[0] for line in lines if (found := _URL.search(line)))
        self.client = httpx.Client(base_url=self.url, timeout=120, trust_env=False)
        end = time.monotonic() + 300
        while self.client.get("/ready").status_code != 200:
            if time.monotonic() > end:
                raise SystemExit("the service is not ready")
            time.sleep(0.2)

    def processor_seconds(self) -> float:
        """Return the processor seconds of the service and its processes so far."""
        family = [psutil.Process(self._process.pid)]
        family += family[0].children(recursive=True)
        return sum(sum(each.cpu_times()[:2]) for each in family)

    def stop(self) -> None:
        """End it."""
        self.client.close()
        self._process.terminate()
        self._process.wait(60)


def measure(service: Service, scene: Scene, views: Sequence[str], rounds: int) -> dict[str, dict[str, Any]]:
    """Ask for views in turns; return milliseconds of each."""
    found: dict[str, list[float]] = {name: [] for name in views}
    processor = dict.fromkeys(views, 0.0)
    sizes = dict.fromkeys(views, 0)
    for number, name in itertools.product(range(-5, rounds), views):
        path = VIEWS[name](scene, number + 5)
        before, started = service.processor_seconds(), time.perf_counter()
        answer = service.client.get(path)
        seconds = time.perf_counter() - started
        if answer.status_code != 200:
            raise SystemExit(f"{path}: status {answer.status_code}")
        if number >= 0:
            found[name].append(1000 * seconds)
            processor[name] += service.processor_seconds() - before
            sizes[name] = len(answer.content)
    return {
        name: {
            "requests": len(times),
            "p50_ms": round(statistics.median(times), 1),
            "p95_ms": round(float(np.percentile(times, 95)), 1),
            "processor_ms": round(1000 * processor[name] / len(times), 1),
            "bytes": sizes[name],
            "all_ms": [round(each, 1) for each in times],
        }
        for name, times in found.items()
    }


def paint(service: Service, scene: Scene, views: Sequence[str], rounds: int) -> Iterator[tuple[str, list[float]]]:
    """Yield each view with the milliseconds until a browser painted its first content."""
    from playwright.sync_api import sync_playwright

    asked = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(service.url)
        for name in (each for each in views if each not in _DATA):
            times = []
            for number in range(rounds):
                page.goto(service.url + VIEWS[name](scene, 200 + number))
                # The policy of the page forbids what waits in it.
                while (painted := page.evaluate(asked)) is None:
                    time.sleep(0.05)
                times.append(round(painted, 1))
            yield name, times
        browser.close()


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--corpus", type=Path, help="folder that keeps the corpus for another time")
    parser.add_argument("--views", nargs="+", choices=VIEWS, default=list(VIEWS), metavar="VIEW")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--paints", type=int, default=10, help="0 to leave the browser out")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = asked.corpus or Path(made)
        scene = build_once(folder / "corpus", asked.documents)
        service = Service(folder / "corpus")
        try:
            load = os.getloadavg()
            views = measure(service, scene, asked.views, asked.rounds)
            for name, times in paint(service, scene, asked.views, asked.paints) if asked.paints else ():
                views[name] |= {"first_paint_p50_ms": statistics.median(times), "first_paint_ms": times}
        finally:
            service.stop()
    for name, each in views.items():
        painted = f", painted after {each['first_paint_p50_ms']} ms" if "first_paint_p50_ms" in each else ""
        figures = f"p50 {each['p50_ms']} ms, p95 {each['p95_ms']} ms, {each['processor_ms']} ms of processor"
        print(f"{name}: {figures}, {each['bytes']:,} bytes{painted}")
    told = {
        **conditions(_PACKAGES),
        "load_before": load,
        "load_after": os.getloadavg(),
        "documents": asked.documents,
        "chunks": _CHUNKS * len(scene.documents),
        "views": views,
    }
    print(write_result(RESULT, told))


def build_once(root: Path, documents: int) -> Scene:
    """Build the corpus, or read one that an earlier measurement kept."""
    if not Lake.exists(str(root)):
        return build(root, documents)
    from parquetry.storage.lake.current import current_rows

    rows = current_rows(Lake(str(root)).snapshot())
    return Scene([row.document_id for row in rows if row.revision], _words(np.random.default_rng(0)))


if __name__ == "__main__":
    main()
