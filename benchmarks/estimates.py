"""Accuracy of `parquetry plan`: its estimates against the actual refresh, for six kinds of text.

    python -m benchmarks.estimates

A loopback service counts tokens with the bundled model's tokenizer, a real one that needs no network.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from parquetry.embed.base import Embedder
from parquetry.embed.registry import open_embedder
from parquetry.flows.pipelines.documents import Request as RefreshRequest
from parquetry.flows.pipelines.documents import plan_only, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.embedding_server import EmbeddingServer, Reply, Request, embeddings

RESULTS = Path(__file__).parent / "results" / "estimates.json"
_CHARACTERS = 200_000
_PRICE = 0.02
"""US dollars per million tokens"""
_WORDS = ("the", "mill", "dries", "oak", "boards", "in", "a", "kiln", "for", "nine", "days", "before", "planing")


def prose(characters: int) -> list[str]:
    """Generate sentences."""
    return _documents(characters, lambda dice: " ".join(dice.choices(_WORDS, k=12)).capitalize() + ". ")


def digits(characters: int) -> list[str]:
    """Generate columns of figures."""
    return _documents(characters, lambda dice: f"{dice.randrange(10**9)} {dice.randrange(10**5)}\n")


def chinese(characters: int) -> list[str]:
    """Generate ideographs."""
    return _documents(characters, lambda dice: "".join(chr(dice.randrange(0x4E00, 0x9000)) for _ in range(15)) + "。")


def notes(characters: int) -> list[str]:
    """Generate documents of a few words."""
    dice = random.Random(7)
    return [f"{number}: " + " ".join(dice.choices(_WORDS, k=3)) for number in range(characters // 100)]


def code(characters: int) -> list[str]:
    """Generate Python functions."""
    return _documents(
        characters,
        lambda dice: f"def f{dice.randrange(10**6)}(a, b):\n    return {{'x': a[{dice.randrange(99)}] ** b}}\n\n\n",
    )


def emoji(characters: int) -> list[str]:
    """Generate pictograms of four bytes each."""
    return _documents(characters, lambda dice: "".join(chr(dice.randrange(0x1F300, 0x1F600)) for _ in range(9)) + " ")


KINDS: dict[str, Callable[[int], list[str]]] = {
    "prose": prose,
    "digits": digits,
    "chinese": chinese,
    "tiny notes": notes,
    "code": code,
    "emoji": emoji,
}


def service(request: Request) -> Reply:
    """Answer with vectors, and count tokens with a real tokenizer."""
    tokens = sum(_tokenizer().count_tokens(request.inputs))
    return embeddings(request, usage={"prompt_tokens": tokens, "total_tokens": tokens})


def measure(kind: str) -> dict[str, object]:
    """Plan and refresh documents of one kind."""
    with tempfile.TemporaryDirectory() as folder, EmbeddingServer(service) as server:
        docs = Path(folder, "docs")
        docs.mkdir()
        for number, text in enumerate(KINDS[kind](_CHARACTERS)):
            (docs / f"{number}.{'py' if kind == 'code' else 'md'}").write_text(text, "utf-8")
        settings = parse_settings(
            {
                "corpus": {"root": str(Path(folder, "corpus")), "embedder": "openai:m"},
                "embedding": {"base_url": server.url, "dimension": 8, "price_per_million_tokens": _PRICE},
                "source": [{"name": "docs", "uri": str(docs)}],
            },
            "benchmark",
        )
        planned = plan_only(RefreshRequest(settings)).estimate
        work = run_refresh(RefreshRequest(settings), DirectEngine(), Observer()).work
        return {
            "kind": kind,
            "documents": len(list(docs.iterdir())),
            "bytes": sum(file.stat().st_size for file in docs.iterdir()),
            "chunks": {"at_most": planned.chunks, "likely": planned.likely.chunks, "run": work.chunks_written},
            "tokens": {"at_most": planned.tokens, "likely": planned.likely.tokens, "run": work.tokens},
            "cost_usd": {
                "at_most": planned.cost_usd,
                "likely": planned.likely.cost_usd,
                "run": work.cost_usd and round(work.cost_usd, 6),
            },
        }


def main() -> None:
    """Measure every kind, print a table and write the results."""
    results = [measure(kind) for kind in KINDS]
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(table(results))


def table(results: Iterable[dict[str, object]]) -> str:
    """Format the results as a Markdown table."""
    lines = [
        "| text | documents | bytes | chunks: at most, likely, run | tokens: at most, likely, run |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for each in results:
        sides = [", ".join(f"{value:,}" for value in each[name].values()) for name in ("chunks", "tokens")]  # type: ignore[attr-defined]
        lines.append(f"| {each['kind']} | {each['documents']:,} | {each['bytes']:,} | {sides[0]} | {sides[1]} |")
    return "\n".join(lines)


def _documents(characters: int, piece: Callable[[random.Random], str]) -> list[str]:
    """Generate texts of 10,000 characters."""
    dice = random.Random(7)
    texts = []
    for _ in range(max(1, characters // 10_000)):
        text = ""
        while len(text) < 10_000:
            text += piece(dice)
        texts.append(text)
    return texts


@cache
def _tokenizer() -> Embedder:
    return open_embedder("wordllama", EmbeddingSettings())


if __name__ == "__main__":
    main()
