"""Speed of the bundled embedder: ours, the library's own `embed`, and its tokenizer alone; or of any embedders.

    python -m benchmarks.embedder FOLDER
    python -m benchmarks.embedder FOLDER --chunks 600 --embedders wordllama onnx:FOLDER --name embedder-models

Chunks are 1,000 characters each, from the PDFs in the folder. Contestants alternate; each repetition of ours starts
with a new embedder, so that nothing is cached from the previous one.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conditions import conditions, wait_until_idle, write_result
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.settings.hub import model_name

CHUNK_CHARACTERS = 1000
PACKAGES = ("parquetry", "wordllama", "onnxruntime", "tokenizers", "numpy")


def chunks_of(folder: Path, wanted: int) -> list[str]:
    """Return up to `wanted` chunks of the text of a folder's PDFs, equally many from the start of each."""
    from parquetry.errors import DocumentError
    from parquetry.extract import registry
    from parquetry.model import RawDocument
    from parquetry.settings.extraction import ExtractionSettings

    chunks: list[str] = []
    settings = ExtractionSettings(ocr=False)
    for document in sorted(folder.rglob("*.pdf")):
        try:
            text = registry.extract(RawDocument(document.read_bytes(), document.name), settings).text
        except DocumentError:
            continue
        last = len(text) - CHUNK_CHARACTERS + 1
        chunks += [text[start : start + CHUNK_CHARACTERS] for start in range(0, last, CHUNK_CHARACTERS)]
        if len(chunks) >= wanted:
            break
    return chunks[:wanted]


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    chunks = chunks_of(options.folder, options.chunks)
    contestants = {"ours": _ours, "library": _library, "tokenizer": _tokenizer}
    if options.embedders:
        contestants = {model_name(each): partial(_embedder, each) for each in options.embedders}
    per_second: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(options.repetitions):
        for name, prepare in contestants.items():
            run = prepare()
            wait_until_idle(options.max_load)
            started = time.perf_counter()
            run(chunks)
            per_second[name].append(round(len(chunks) / (time.perf_counter() - started), 1))
    result = {
        "conditions": conditions(PACKAGES),
        "chunks": len(chunks),
        "characters_per_chunk": CHUNK_CHARACTERS,
        "chunks_per_second": per_second,
        "median": {name: statistics.median(rates) for name, rates in per_second.items()},
    }
    if not options.embedders:
        result["cosine_to_library_on_lower_case"] = _agreement(chunks[:200])
    for name, rates in per_second.items():
        print(f"{name:<24} {statistics.median(rates):8.0f} chunks/s (from {min(rates):.0f} to {max(rates):.0f})")
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _ours() -> Callable[[list[str]], object]:
    from parquetry.embed.wordllama import WordLlamaEmbedder

    return WordLlamaEmbedder(EmbeddingSettings()).embed


def _embedder(name: str) -> Callable[[list[str]], object]:
    from parquetry.embed import registry

    registry._open.clear()
    return registry.open_embedder(name, EmbeddingSettings()).embed


def _library() -> Callable[[list[str]], object]:
    model = _model()
    return lambda chunks: model.embed(chunks, norm=True)


def _tokenizer() -> Callable[[list[str]], object]:
    tokenizer = _model().tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return lambda chunks: tokenizer.encode_batch_fast(chunks, add_special_tokens=False)


def _model() -> Any:
    import wordllama

    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def _agreement(chunks: list[str]) -> float:
    """Return the smallest cosine between our vector of a chunk and the library's, for the chunk in lower case."""
    ours: Any = _ours()(chunks)
    theirs = _model().embed([chunk.lower() for chunk in chunks], norm=True)
    return round(float(np.sum(ours.vectors * theirs, axis=1).min()), 4)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedder")
    parser.add_argument("folder", type=Path, help="a folder of PDFs")
    parser.add_argument("--chunks", type=int, default=8000)
    parser.add_argument("--embedders", nargs="+", help="as in the settings, in place of the bundled one's three")
    parser.add_argument("--name", default="embedder", help="of the result")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--max-load", type=float, help="wait before each run until the load average is below this")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
