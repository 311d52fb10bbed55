"""Estimate of the cost of a refresh in advance: the likely cost and the maximum."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from parquetry.chunking.chunker import CHARACTERS_PER_TOKEN
from parquetry.embed.base import Worst
from parquetry.extract.media_types import UTF8_PER_BYTE, UTF8_PER_CHARACTER, by_filename, keeps_its_size
from parquetry.extract.registry import extractor_for
from parquetry.model import DocumentRow
from parquetry.planning.diff import Change
from parquetry.settings.embedding import ChunkingSettings, EmbeddingSettings

BATCH_API_SHARE = 0.5
"""price of an embedding service's batch API, relative to its regular price"""
"""in Western prose; used until a corpus holds documents of the same extension"""
CHUNKS_PER_STEP = 4
"""maximum number of chunks per step, which is the size minus the overlap; `Packer` closes emptier ones only
before a block that fills the next one"""
_CHARACTERS_PER_BYTE = {".pdf": 0.15, ".docx": 0.1, ".pptx": 0.02, ".xlsx": 0.5, ".png": 0.0, ".jpg": 0.0, ".jpeg": 0.0}
"""for formats other than plain text; used until a corpus holds documents of the same extension"""


@dataclass(frozen=True, slots=True)
class Amount:
    """Number of chunks and tokens, and their cost."""

    chunks: int
    tokens: int
    cost_usd: float | None
    """US dollars; None if a price is unknown"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Maximum cost of a refresh; vectors that already exist make it cheaper."""

    chunks: int
    tokens: int
    cost_usd: float | None
    """US dollars; None if a price is unknown"""
    cost_usd_batch: float | None
    """US dollars, through the service's batch API"""
    likely: Amount
    unbounded: int = 0
    """documents with unbounded text, counted with their likely amounts; if there are any, the totals are no maximum"""


class Ratios:
    """Characters and tokens per byte of a file, by extension, learned from published documents."""

    def __init__(self) -> None:
        self._sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def learn(self, row: DocumentRow) -> None:
        if row.status == "indexed":
            sums = self._sums[_extension(row.path)]
            for place, value in enumerate((row.size, row.characters, row.tokens)):
                sums[place] += value

    def characters(self, path: str) -> float:
        """Return the characters of text per byte of a file."""
        size, characters, _ = self._sums.get(extension := _extension(path), (0, 0, 0))
        return characters / size if size else _CHARACTERS_PER_BYTE.get(extension, 1.0)

    def tokens(self, path: str) -> float | None:
        """Return the embedded tokens per character of text; None if no document of this extension was embedded."""
        _, characters, tokens = self._sums.get(_extension(path), (0, 0, 0))
        return tokens / characters if characters and tokens else None


def estimate(
    changes: Iterable[Change],
    ratios: Ratios,
    chunking: ChunkingSettings,
    embedding: EmbeddingSettings,
    worst: Callable[[str], Worst],
    price: Callable[[str], float | None],
) -> Estimate:
    """Estimate the cost from the sizes of the planned work and from published documents of the same extension.

    Args:
        changes: planned changes.
        ratios: ratios learned from the corpus.
        chunking: chunk size and overlap.
        embedding: template and prefixes of the embedded text.
        worst: namespace -> worst case of its tokenizer; called only if there is something to embed.
        price: namespace -> US dollars per million tokens, None if unknown; called under the same condition as `worst`.
    """
    likely, most = _Sum(), _Sum()
    unbounded = 0
    for change in changes:
        if change.effort not in ("rechunk", "extract"):
            continue
        expected = _likely(change, ratios, chunking)
        likely.add(change.namespace, *expected)
        bytes_ = _bytes_at_most(change, embedding)
        if bytes_ is None:
            unbounded += 1
            most.add(change.namespace, *expected)
        elif bytes_:
            parts = change.base.pages + 1 if change.effort == "rechunk" and change.base is not None else 1
            most.add(change.namespace, *_at_most(bytes_, parts, chunking, embedding, worst(change.namespace)))
    cost, likely_cost = most.cost(price), likely.cost(price)
    return Estimate(
        most.chunks,
        most.tokens,
        cost,
        None if cost is None else round(cost * BATCH_API_SHARE, 6),
        Amount(likely.chunks, likely.tokens, likely_cost),
        unbounded,
    )


class _Sum:
    def __init__(self) -> None:
        self.chunks = 0
        self._tokens: dict[str, float] = defaultdict(float)

    def add(self, namespace: str, chunks: int, tokens: float) -> None:
        self.chunks += chunks
        self._tokens[namespace] += tokens

    @property
    def tokens(self) -> int:
        return math.ceil(sum(self._tokens.values()))

    def cost(self, price: Callable[[str], float | None]) -> float | None:
        total = 0.0
        for namespace, tokens in self._tokens.items():
            rate = price(namespace) if tokens else 0.0
            if rate is None:
                return None
            total += tokens * rate / 1e6
        return round(total, 6)


def _likely(change: Change, ratios: Ratios, chunking: ChunkingSettings) -> tuple[int, float]:
    """Return the expected chunks and tokens."""
    base = change.base
    if change.effort == "rechunk" and base is not None:
        characters: float = base.characters
        path = base.path
    elif change.item is not None and not _has_no_reader(change.item.path):
        path = change.item.path
        characters = change.item.size * ratios.characters(path)
    else:
        return 0, 0.0
    if not characters:
        return 0, 0.0
    unit = CHARACTERS_PER_TOKEN if chunking.unit == "tokens" else 1.0
    size, step = chunking.size * unit, max(1, chunking.size - chunking.overlap) * unit
    chunks = max(1, math.ceil(characters / step))
    learned = ratios.tokens(path)
    if learned is not None:
        return chunks, characters * learned
    repeated = size / step if characters > size else 1.0
    return chunks, characters * repeated / CHARACTERS_PER_TOKEN


def _bytes_at_most(change: Change, embedding: EmbeddingSettings) -> int | None:
    """Return the maximum UTF-8 bytes of a document's text; None if it has no bound."""
    base = change.base
    if change.effort == "rechunk" and base is not None:
        return base.characters * UTF8_PER_CHARACTER
    if change.item is None or _has_no_reader(change.item.path):
        return 0
    # Headings and titles precede every chunk, whatever their length.
    repeats = "{title}" in embedding.template or "{headings}" in embedding.template
    if repeats or not keeps_its_size(change.item.path):
        return None
    return change.item.size * UTF8_PER_BYTE


def _at_most(
    text: int, parts: int, chunking: ChunkingSettings, embedding: EmbeddingSettings, worst: Worst
) -> tuple[int, float]:
    """Return the maximum chunks and tokens of any text with this many bytes and parts."""
    step = max(1, chunking.size - chunking.overlap)
    # A unit is at least one byte, except for tokens: one byte may become several.
    units = text * (worst.tokens_per_byte if chunking.unit == "tokens" else 1)
    chunks = min(text, parts + math.ceil(CHUNKS_PER_STEP * units / step))
    repeated = min((chunks - 1) * text, math.ceil(CHUNKS_PER_STEP * text * chunking.overlap / step))
    around = len((embedding.document_prefix + embedding.template.replace("{text}", "")).encode())
    return chunks, (text + repeated + chunks * around) * worst.tokens_per_byte + chunks * worst.tokens_per_text


def _has_no_reader(path: str) -> bool:
    """Return True if documents of this name are certain to be skipped, judged by the name alone."""
    media_type = by_filename(path)
    return media_type is not None and extractor_for(media_type) is None


def _extension(path: str) -> str:
    return PurePosixPath(path).suffix.lower()
