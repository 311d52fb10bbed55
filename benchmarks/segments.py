"""An index in one file and the same in segments: what building, opening, searching and updating cost.

    python -m benchmarks.segments [--chunks 200000] [--segment 25000]

Made chunks; searches of the two take turns in one process, read the files, and must find the same.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.search_material import Material
from benchmarks.search_synthetic import change, synthetic
from parquetry.settings.sections import SearchSettings
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.search.searcher import Mode, Searcher

PACKAGES = ("parquetry", "duckdb", "numpy")
MODES: tuple[Mode, ...] = ("text", "vector", "hybrid")
QUERIES, ROUNDS, UPDATES, CHANGED = 15, 5, 4, 10


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="parquetry-segments-", dir=options.scratch) as scratch:
        material = synthetic(Path(scratch) / "corpus", options.chunks)
        folders = {
            way: IndexFolder(
                material.snapshot().layout,
                SearchSettings(language="none", segment_chunks=most, index_folder=f"{scratch}/{number}"),
            )
            for number, (way, most) in enumerate((("one file", 100_000_000), ("segments", options.segment)))
        }
        told: dict[str, dict[str, Any]] = {way: _built(folder, material) for way, folder in folders.items()}
        _search(folders, material, told)
        _update(folders, material, told)
    result = {
        "conditions": conditions(PACKAGES),
        "load": os.getloadavg()[0],
        "chunks": options.chunks,
        "chunks of a segment": options.segment,
        "ways": told,
    }
    for way, figures in told.items():
        print(way, figures, flush=True)
    print(f"written to {write_result('segments', result, options.results)}")
    return result


def _built(folder: IndexFolder, material: Material) -> dict[str, Any]:
    with _processor() as used:
        made = folder.refresh(material.snapshot())
    return {"build": used[0], "segments": len(made.segments), "bytes": made.bytes}


def _search(folders: Mapping[str, IndexFolder], material: Material, told: Mapping[str, dict[str, Any]]) -> None:
    """Measure opening and searches, and compare what they find."""
    vectors, texts = material.array("queries"), material.query_texts()
    embedder = material.facts["embedder"]
    times: dict[tuple[str, str], list[float]] = {}
    for turn in range(ROUNDS):
        found: dict[str, list[Any]] = {way: [] for way in folders}
        for way, folder in sorted(folders.items(), reverse=bool(turn % 2)):
            with _processor() as used:
                opened = folder.open(material.snapshot())
            times.setdefault((way, "open"), []).append(used[0])
            with closing(opened):
                searcher = Searcher(opened.session())
                for mode in MODES:
                    for number in range(QUERIES):
                        with _processor() as used:
                            hits = searcher.search(texts[number], {embedder: vectors[number]}, mode, 10)
                        times.setdefault((way, mode), []).append(used[0])
                        found[way] += [(hit.row["chunk_id"], hit.score) for hit in hits]
        if found["one file"] != found["segments"]:
            raise RuntimeError("an index in segments finds something else than one file")
    for (way, what), each in times.items():
        told[way][f"{what}, ms"] = round(1000 * median(each), 1)


def _update(folders: Mapping[str, IndexFolder], material: Material, told: Mapping[str, dict[str, Any]]) -> None:
    """Measure updates while a reader has the file before, so that none can be reused."""
    readers = []
    for turn in range(UPDATES):
        change(material, CHANGED, f"change-{turn}")
        for way, folder in folders.items():
            with _processor() as used:
                made = folder.refresh(material.snapshot())
            told[way].setdefault("updates", []).append(used[0])
            told[way]["bytes copied by an update"] = made.path.stat().st_size
            readers.append(folder.open(material.snapshot()))
    for reader in readers:
        reader.close()
    for way, folder in folders.items():
        told[way]["bytes kept"] = sum(file.stat().st_size for file in folder.path.glob("*.duckdb"))


@contextmanager
def _processor() -> Iterator[list[float]]:
    used: list[float] = []
    before = time.process_time()
    yield used
    used.append(round(time.process_time() - before, 4))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.segments", description=__doc__)
    parser.add_argument("--chunks", type=int, default=200_000, help="number of made chunks, a multiple of 10")
    parser.add_argument("--segment", type=int, default=25_000, help="chunks of a segment")
    parser.add_argument("--scratch", type=Path, help="where the corpus goes")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
