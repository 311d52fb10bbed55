"""Synthetic corpora: clustered vectors, and words drawn by Zipf's law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.search_material import ACCESS, QUERIES, WARM_UP, Material, Vectors, empty, group_of, save
from parquetry import ids
from parquetry.model import DocumentRow
from parquetry.storage.lake import schema
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.shards import write_shard

DIMENSION = 256
"""dimension of the bundled embedder"""
DOCUMENT_CHUNKS = 10
SHARD_CHUNKS = 50_000
QUERY_WORDS = 4
COMMON_WORDS = 100
"""number of most frequent words in the vocabulary, left out of queries like stop words"""
VOCABULARY = 50_000
_THEN = datetime(2031, 3, 1, tzinfo=UTC)


def synthetic(folder: Path, chunks: int) -> Material:
    """Create a corpus of clustered vectors, and of words drawn by Zipf's law.

    Args:
        folder: folder to create.
        chunks: number of chunks, a multiple of 10.
    """
    empty(folder)
    material = Material(folder)
    rng = np.random.default_rng(chunks)
    draw = clusters(rng, max(20, chunks // 500))
    vectors = np.concatenate([draw(min(SHARD_CHUNKS, chunks - at)) for at in range(0, chunks, SHARD_CHUNKS)])
    asked = np.sort(rng.choice(chunks, QUERIES + WARM_UP, replace=False))
    queries = _unit(vectors[asked] + rng.normal(0, 0.03, (len(asked), DIMENSION)).astype(np.float32))
    vocabulary, words = _words(VOCABULARY), _zipf(rng)
    lake = Lake(material.root, create=True)
    shards, rows, texts = [], [], []
    for at in range(0, chunks, SHARD_CHUNKS):
        part = vectors[at : at + SHARD_CHUNKS]
        drawn, offsets = words(len(part))
        documents = range(at // DOCUMENT_CHUNKS, (at + len(part)) // DOCUMENT_CHUNKS)
        made = [_document(number, "first") for number in documents]
        name = f"first-{at:08d}.parquet"
        table = _chunk_table([row.revision for row in made], part, _joined(vocabulary, drawn, offsets))
        shards.append(write_shard(lake.layout, "chunks", name, table))
        shards.append(write_shard(lake.layout, "texts", name, _text_table([row.revision for row in made], part)))
        rows += made
        here = asked[(asked >= at) & (asked < at + len(part))] - at
        texts += [_query(rng, drawn[offsets[chunk] : offsets[chunk + 1]], vocabulary) for chunk in here]
    lake.register(shards, "first")
    lake.publish(lake.snapshot(), rows, "first")
    groups = np.repeat(np.array([group_of(number) for number in range(len(rows))], np.int8), DOCUMENT_CHUNKS)
    firsts = {row.document_id: number * DOCUMENT_CHUNKS for number, row in enumerate(rows)}
    save(material, vectors, groups, queries, texts, firsts, {"kind": "synthetic", "embedder": rows[0].embedder})
    return material


def change(material: Material, documents: int, run: str) -> None:
    """Replace documents spread over a synthetic corpus, and publish them.

    Args:
        material: material of the corpus; its arrays are not updated.
        documents: number of documents.
        run: unused name.
    """
    lake = Lake(material.root, create=True)
    rng = np.random.default_rng(len(run))
    count = material.facts["documents"]
    rows = [_document(number, run) for number in range(0, count, count // documents)][:documents]
    vectors = clusters(rng, 20)(len(rows) * DOCUMENT_CHUNKS)
    revisions = [row.revision for row in rows]
    texts = _joined(_words(VOCABULARY), *_zipf(rng)(len(vectors)))
    shards = [
        write_shard(lake.layout, "chunks", f"{run}.parquet", _chunk_table(revisions, vectors, texts)),
        write_shard(lake.layout, "texts", f"{run}.parquet", _text_table(revisions, vectors)),
    ]
    lake.register(shards, run)
    lake.publish(lake.snapshot(), rows, run)


def clusters(rng: np.random.Generator, count: int) -> Callable[[int], Vectors]:
    """Return a sampler of unit vectors around `count` centres, on axes of unequal weight as in real embeddings."""
    centres = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    mixing = rng.standard_normal((DIMENSION, DIMENSION), dtype=np.float32) / np.float32(16)
    weights = np.exp(-np.arange(DIMENSION) / 60).astype(np.float32)

    def draw(size: int) -> Vectors:
        noise = rng.standard_normal((size, DIMENSION), dtype=np.float32)
        points = centres[rng.integers(0, count, size)] * np.float32(0.8) + noise * np.float32(0.9)
        return _unit((points * weights) @ mixing)

    return draw


def _unit(vectors: Vectors) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _words(count: int) -> pa.Array:
    """Return distinct words of two to five syllables, shorter ones first."""
    syllables = [consonant + vowel for consonant in "bcdfghjklmnprtvz" for vowel in "aeiou"]
    names = []
    for number in range(len(syllables), len(syllables) + count):
        name, rest = "", number
        while rest:
            rest, digit = divmod(rest, len(syllables))
            name += syllables[digit]
        names.append(f"{name}n")
    return pa.array(names, pa.string())


def _zipf(rng: np.random.Generator) -> Callable[[int], tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
    """Return a sampler of texts of 60 to 119 words: word numbers, and the start of each text."""
    frequencies = 1 / (np.arange(VOCABULARY) + 2.7)
    # A lookup table is ten times as fast as a search in the cumulative frequencies.
    table = np.repeat(
        np.arange(VOCABULARY, dtype=np.int32), np.maximum(1, (frequencies / frequencies.sum() * (1 << 20)).astype(int))
    )

    def draw(texts: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        offsets = np.concatenate([[0], np.cumsum(rng.integers(60, 120, texts))]).astype(np.int32)
        return table[rng.integers(0, len(table), offsets[-1])], offsets

    return draw


def _joined(vocabulary: pa.Array, words: npt.NDArray[np.int32], offsets: npt.NDArray[np.int32]) -> pa.Array:
    lists = pa.ListArray.from_arrays(pa.array(offsets), vocabulary.take(pa.array(words)))
    return pc.binary_join(lists, " ")


def _query(rng: np.random.Generator, words: npt.NDArray[np.int32], vocabulary: pa.Array) -> str:
    rare = np.unique(words[words >= COMMON_WORDS])
    return " ".join(vocabulary[int(word)].as_py() for word in rng.permutation(rare)[:QUERY_WORDS])


def _document(number: int, run: str) -> DocumentRow:
    path = f"{number // 1000:03d}/{number:06d}.md"
    identity = ids.document_id("default", "benchmark", path)
    return DocumentRow(
        document_id=identity,
        namespace="default",
        source="benchmark",
        path=path,
        uri=f"file:///benchmark/{path}",
        filename=path.rpartition("/")[2],
        title=f"Document {number}",
        media_type="text/markdown",
        size=5000,
        etag=run,
        modified_at=_THEN,
        content_hash=ids.content_hash(f"{number} {run}".encode()),
        revision=ids.revision(identity, run),
        sequence=1,
        removed=False,
        fingerprint="benchmark",
        status="indexed",
        error=None,
        attempts=0,
        transient=False,
        extractor="markdown/1",
        embedder=f"synthetic@{DIMENSION}",
        pages=0,
        characters=5000,
        chunks=DOCUMENT_CHUNKS,
        tokens=900,
        access=ACCESS[group_of(number)],
        metadata={},
        uploaded_by=None,
        created_at=_THEN,
        indexed_at=_THEN,
        run_id=run,
    )


def _chunk_table(revisions: Sequence[int], vectors: Vectors, texts: pa.Array) -> pa.Table:
    count = len(vectors)
    index = np.tile(np.arange(DOCUMENT_CHUNKS, dtype=np.int32), len(revisions))
    repeated = np.repeat(np.array(revisions, np.int64), DOCUMENT_CHUNKS)
    headings = pa.ListArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32)), pa.array([f"Part {i % DOCUMENT_CHUNKS}" for i in range(count)])
    )
    hashes = ids.text_hashes(f"{revision} {place}" for revision, place in zip(repeated, index, strict=True))
    columns = {
        "revision": pa.array(repeated),
        "chunk_index": pa.array(index),
        "start": pa.array(index.astype(np.int64) * 500),
        "end": pa.array(index.astype(np.int64) * 500 + 500),
        "kind": pa.array(["document"] * count),
        "page": pa.nulls(count, pa.int32()),
        "headings": headings,
        "text": texts,
        "tokens": pa.array(np.full(count, 90, np.int32)),
        "text_hash": pa.array(hashes),
        "embedder": pa.array([f"synthetic@{DIMENSION}"] * count),
        "vector": _lists(vectors),
    }
    return pa.table(columns, schema=schema.CHUNKS)


def _text_table(revisions: Sequence[int], vectors: Vectors) -> pa.Table:
    """Return document-level vectors; no search reads the text."""
    count = len(revisions)
    means = _unit(vectors.reshape(count, DOCUMENT_CHUNKS, DIMENSION).mean(axis=1))
    columns = {
        "revision": pa.array(revisions, pa.int64()),
        "text": pa.array([""] * count),
        "structure": pa.array(['{"parts":[],"headings":[]}'] * count),
        "embedder": pa.array([f"synthetic@{DIMENSION}"] * count),
        "vector": _lists(means),
    }
    return pa.table(columns, schema=schema.TEXTS)


def _lists(vectors: Vectors) -> pa.ListArray:
    offsets = np.arange(0, vectors.size + 1, DIMENSION, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(vectors).ravel()))
