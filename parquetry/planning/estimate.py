"""Estimate of the cost of a refresh in advance: the likely cost and the maximum."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from parquetry.chunking.fingerprint import CHARACTERS_PER_TOKEN
from parquetry.embed.base import Worst
from parquetry.embed.prices import Price
from parquetry.extract.media_types import (
    COMPRESSED,
    UTF8_PER_BYTE,
    UTF8_PER_CHARACTER,
    by_filename,
    keeps_its_size,
    name_inside,
)
from parquetry.extract.readers import reader_of
from parquetry.model import DocumentRow
from parquetry.planning.diff import Change
from parquetry.planning.outline import DocumentOutline
from parquetry.settings.embedding import ChunkingSettings, EmbeddingSettings

"""in Western prose; used until a corpus holds documents of the same extension"""
CHUNKS_PER_STEP = 4
"""maximum number of chunks per step, which is the size minus the overlap; `Packer` closes emptier ones only
before a block that fills the next one"""
_CHARACTERS_PER_BYTE = {
    **{".pdf": 0.15, ".docx": 0.1, ".pptx": 0.02, ".xlsx": 0.5, ".png": 0.0, ".jpg": 0.0, ".jpeg": 0.0},
    **dict.fromkeys(COMPRESSED.values(), 4.0),
}
"""for formats other than plain text; used until a corpus holds documents of the same extension"""


@dataclass(frozen=True, slots=True)
class Amount:
    """Number of chunks and tokens, and their cost."""

    chunks: int
    tokens: int
    cost_usd: float | None
    """US dollars; None if a price is unknown"""


@dataclass(frozen=True, slots=True)
class SourceEstimate:
    """Likely and maximum cost of one source."""

    namespace: str
    source: str
    new: Amount
    """likely, for documents without published vectors"""
    changed: Amount
    """likely, for documents that are published: chunks whose text did not change cost nothing, so this may be less"""
    most: Amount
    """maximum; with `unbounded` documents it is none"""
    documents_new: int
    documents_changed: int
    assumed: int
    """documents of kinds that are not published yet, whose amount of text is assumed and not measured"""
    unbounded: int

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry plan --json` prints for a source."""
        return {
            "namespace": self.namespace,
            "source": self.source,
            "new": {"documents": self.documents_new, **asdict(self.new)},
            "changed": {"documents": self.documents_changed, **asdict(self.changed)},
            "at_most": asdict(self.most),
            "assumed": self.assumed,
            "unbounded": self.unbounded,
        }


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
    sources: tuple[SourceEstimate, ...] = ()
    """sources with something to embed, in the order of their changes"""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """embedder, as the settings name it -> its price; those of unknown price are missing"""
    likely_usd_batch: float | None = None
    """likely cost in US dollars, through the service's batch API"""
    batched: frozenset[str] = frozenset()
    """embedders, as the settings name them, whose work is sent to the batch API"""
    expected_usd: float | None = None
    """likely cost in US dollars, of each embedder's work in the way that it is sent"""


class Ratios:
    """Characters and tokens per byte of a file, by extension, learned from published documents."""

    def __init__(self) -> None:
        self._sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def learn(self, row: DocumentRow | DocumentOutline) -> None:
        if row.status == "indexed":
            self.learn_sums(extension_of(row.path), row.size, row.characters, row.tokens)

    def learn_sums(self, extension: str, size: int, characters: int, tokens: int) -> None:
        """Learn from several documents: their bytes, characters and tokens."""
        sums = self._sums[extension]
        sums[0] += size
        sums[1] += characters
        sums[2] += tokens

    def characters(self, path: str) -> float:
        """Return the characters of text per byte of a file."""
        size, characters, _ = self._sums.get(extension := extension_of(path), (0, 0, 0))
        return characters / size if size else _CHARACTERS_PER_BYTE.get(extension, 1.0)

    def knows(self, path: str) -> bool:
        """Return True if a document of this extension is published."""
        return bool(self._sums.get(extension_of(path), (0,))[0])

    def tokens(self, path: str) -> float | None:
        """Return the embedded tokens per character of text; None if no document of this extension was embedded."""
        _, characters, tokens = self._sums.get(extension_of(path), (0, 0, 0))
        return tokens / characters if characters and tokens else None


def estimate(
    changes: Iterable[Change],
    ratios: Ratios,
    chunking: ChunkingSettings,
    embedding: EmbeddingSettings,
    worst: Callable[[str], Worst],
    price: Callable[[str], float | None],
    batch_share: float = 0.5,
) -> Estimate:
    """Estimate the cost from the sizes of the planned work and from published documents of the same extension.

    Args:
        changes: planned changes.
        ratios: ratios learned from the corpus.
        chunking: chunk size and overlap.
        embedding: template and prefixes of the embedded text.
        worst: namespace -> worst case of its tokenizer; called only if there is something to embed.
        price: namespace -> US dollars per million tokens, None if unknown; called under the same condition as `worst`.
        batch_share: price of a batch API, as a share of the ordinary price.
    """
    likely, most = _Sum(), _Sum()
    sources: dict[tuple[str, str], _SourceSum] = defaultdict(_SourceSum)
    for change in changes:
        if change.effort not in ("rechunk", "extract"):
            continue
        expected = _likely(change, ratios, chunking)
        bytes_ = _bytes_at_most(change, embedding)
        largest = expected if bytes_ is None else (0, 0.0)
        if bytes_:
            parts = change.base.pages + 1 if change.effort == "rechunk" and change.base is not None else 1
            largest = _at_most(bytes_, parts, chunking, embedding, worst(change.namespace))
        likely.add(change.namespace, *expected)
        most.add(change.namespace, *largest)
        # The text of a document that is chunked again is stored.
        assumed = change.effort == "extract" and change.item is not None and not ratios.knows(change.item.path)
        source = sources[change.namespace, change.source]
        source.add(change, expected, largest, bounded=bytes_ is not None, assumed=assumed)
    cost, likely_cost = most.cost(price), likely.cost(price)
    return Estimate(
        most.chunks,
        most.tokens,
        cost,
        _share(cost, batch_share),
        Amount(likely.chunks, likely.tokens, likely_cost),
        sum(each.unbounded for each in sources.values()),
        tuple(each.estimate(*key, price) for key, each in sources.items() if each.most.chunks),
        likely_usd_batch=_share(likely_cost, batch_share),
        expected_usd=likely_cost,
    )


def sent_as_batches(
    found: Estimate, embedder_of: Callable[[str], str], takes: Callable[[str, int], bool], batch_share: float
) -> Estimate:
    """Return an estimate with the embedders whose work is sent to a batch API, and the cost to expect.

    Args:
        found: the estimate.
        embedder_of: namespace -> its embedder, as the settings name it.
        takes: embedder and its likely tokens -> True if its work is sent as batches.
        batch_share: price of a batch API, as a share of the ordinary price.
    """
    tokens: dict[str, int] = defaultdict(int)
    for source in found.sources:
        tokens[embedder_of(source.namespace)] += source.new.tokens + source.changed.tokens
    batched = frozenset(embedder for embedder, count in tokens.items() if takes(embedder, count))
    costs = [
        _share(amount.cost_usd, batch_share if embedder_of(source.namespace) in batched else 1.0)
        for source in found.sources
        for amount in (source.new, source.changed)
    ]
    expected = None if None in costs else round(sum(cost or 0.0 for cost in costs), 6)
    return replace(found, batched=batched, expected_usd=expected if batched else found.likely.cost_usd)


def _share(cost_usd: float | None, share: float) -> float | None:
    return None if cost_usd is None else round(cost_usd * share, 6)


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

    def amount(self, price: Callable[[str], float | None]) -> Amount:
        return Amount(self.chunks, self.tokens, self.cost(price))

    def cost(self, price: Callable[[str], float | None]) -> float | None:
        total = 0.0
        for namespace, tokens in self._tokens.items():
            rate = price(namespace) if tokens else 0.0
            if rate is None:
                return None
            total += tokens * rate / 1e6
        return round(total, 6)


class _SourceSum:
    def __init__(self) -> None:
        self.new, self.changed, self.most = _Sum(), _Sum(), _Sum()
        self.documents_new = self.documents_changed = self.assumed = self.unbounded = 0

    def add(
        self,
        change: Change,
        likely: tuple[int, float],
        most: tuple[int, float],
        *,
        bounded: bool,
        assumed: bool,
    ) -> None:
        """Add a change with its likely and its maximum chunks and tokens."""
        if change.base is None:
            self.new.add(change.namespace, *likely)
            self.documents_new += 1
        else:
            self.changed.add(change.namespace, *likely)
            self.documents_changed += 1
        self.most.add(change.namespace, *most)
        self.assumed += assumed and likely[0] > 0
        self.unbounded += not bounded

    def estimate(self, namespace: str, source: str, price: Callable[[str], float | None]) -> SourceEstimate:
        return SourceEstimate(
            namespace,
            source,
            self.new.amount(price),
            self.changed.amount(price),
            self.most.amount(price),
            self.documents_new,
            self.documents_changed,
            self.assumed,
            self.unbounded,
        )


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
    if media_type in COMPRESSED:
        media_type = by_filename(name_inside(path))
    return media_type is not None and reader_of(media_type) is None


def extension_of(path: str) -> str:
    """Return the extension of a path, in small letters and with its dot; empty without one."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""
