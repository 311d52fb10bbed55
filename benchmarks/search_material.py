"""Corpus for the search benchmark: the tables of a lake, plus plain arrays for other programs.

A folder of material holds `corpus/` (the lake), `vectors.npy` (float32[chunks, dimension], in document order),
`groups.npy` (int8[chunks], see `GROUPS`), `queries.npy` (float32[queries, dimension]), `truth.npz` (the numbers of the
10 nearest chunks to each query, for everything and each group), `documents.json` (document id -> number of its first
chunk), `queries.json` and `material.json`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from parquetry.model import Access
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.search.filters import Caller

Vectors = npt.NDArray[np.float32]
QUERIES = 50
"""number of timed queries"""
WARM_UP = 50
"""number of warm-up queries before them"""
NEAREST = 10
CALLERS = {"40 %": Caller(org_id="forty"), "1 %": Caller(user_id="one")}
"""share of visible documents -> caller"""
GROUPS = {"40 %": 1, "1 %": 2}
"""share -> number in `groups.npy` of the documents its caller sees; neither caller sees 0"""
ACCESS = {
    0: Access("organization", "others"),
    1: Access("organization", "forty"),
    2: Access("individual", None, "one"),
}
_BLOCK = 50_000
"""vectors compared at a time"""


@dataclass(frozen=True, slots=True)
class Material:
    """A corpus and its queries."""

    folder: Path

    @property
    def root(self) -> str:
        return str(self.folder / "corpus")

    @property
    def facts(self) -> dict[str, Any]:
        """Kind of corpus, number of chunks and documents, and id of the embedder."""
        return dict(json.loads((self.folder / "material.json").read_text("utf-8")))

    @property
    def complete(self) -> bool:
        return (self.folder / "material.json").exists()

    def array(self, name: str) -> Any:
        return np.load(self.folder / f"{name}.npy")

    def query_texts(self) -> list[str]:
        return list(json.loads((self.folder / "queries.json").read_text("utf-8")))

    def snapshot(self) -> Snapshot:
        return Lake(self.root).snapshot()


def group_of(document: int) -> int:
    """Return the group of the n-th document: two in five belong to one caller, one in a hundred to the other."""
    if document % 5 < 2:
        return GROUPS["40 %"]
    return GROUPS["1 %"] if document % 100 == 99 else 0


def real(folder: Path, refreshed: Path) -> Material:
    """Build material from a refreshed corpus of real documents.

    Queries are eight consecutive words of a chunk, embedded as in a search.

    Args:
        folder: folder to create; the corpus is moved into it, with visibility as in the synthetic ones.
        refreshed: folder of the corpus, embedded by the bundled embedder.
    """
    from parquetry.embed.registry import open_embedder
    from parquetry.settings.embedding import EmbeddingSettings

    empty(folder)
    material = Material(folder)
    shutil.move(refreshed, folder / "corpus")
    lake = Lake(material.root, create=True)
    rows = sorted(
        (row for row in current_rows(lake.snapshot()) if row.revision and row.chunks), key=lambda row: row.revision
    )
    shared = [replace(row, access=ACCESS[group_of(number)]) for number, row in enumerate(rows)]
    lake.publish(lake.snapshot(), shared, "share")
    chunks = _visible_chunks(lake.snapshot(), [row.revision for row in rows])
    vectors = _matrix(chunks)
    sizes = np.array([row.chunks for row in rows])
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
    groups = np.repeat(np.array([group_of(number) for number in range(len(rows))], np.int8), sizes)
    texts, embedder = [], open_embedder("wordllama", EmbeddingSettings())
    queries = []
    for text in _phrases(np.random.default_rng(0), chunks.column("text")):
        vector = embedder.embed_query(text)
        if vector.any():
            texts.append(text)
            queries.append(vector)
        if len(texts) == QUERIES + WARM_UP:
            break
    starts = {row.document_id: first for row, first in zip(rows, firsts, strict=True)}
    save(material, vectors, groups, np.stack(queries), texts, starts, {"kind": "real", "embedder": embedder.id})
    return material


def _visible_chunks(snapshot: Snapshot, revisions: Sequence[int]) -> pa.Table:
    columns = ["revision", "chunk_index", "text", "vector"]
    table = pa.concat_tables([pq.read_table(file, columns=columns) for file in snapshot.files["chunks"]])
    table = table.filter(pc.is_in(table.column("revision"), pa.array(revisions, pa.int64())))
    return table.sort_by([("revision", "ascending"), ("chunk_index", "ascending")])


def _matrix(chunks: pa.Table) -> Vectors:
    """Return the vectors of chunks; a chunk without a vector has zeros, which are near to nothing."""
    column = chunks.column("vector").combine_chunks()
    dimension = pc.max(pc.list_value_length(column)).as_py()
    matrix = np.zeros((len(column), dimension), np.float32)
    matrix[column.is_valid().to_numpy(zero_copy_only=False)] = column.flatten().to_numpy().reshape(-1, dimension)
    return matrix


def _phrases(rng: np.random.Generator, texts: pa.ChunkedArray) -> Iterator[str]:
    length = 8
    while True:
        words = texts[int(rng.integers(len(texts)))].as_py().split()
        if len(words) >= length:
            start = int(rng.integers(len(words) - length + 1))
            yield " ".join(words[start : start + length])


def empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def save(
    material: Material,
    vectors: Vectors,
    groups: npt.NDArray[np.int8],
    queries: Vectors,
    texts: Sequence[str],
    firsts: Mapping[str, int],
    facts: Mapping[str, Any],
) -> None:
    folder = material.folder
    for name, array in (("vectors", vectors), ("groups", groups), ("queries", queries)):
        np.save(folder / f"{name}.npy", array)
    truth = {name: nearest(vectors, queries, groups == group) for name, group in GROUPS.items()}
    np.savez(folder / "truth.npz", **{"all": nearest(vectors, queries, None), **truth})
    (folder / "queries.json").write_text(json.dumps(list(texts)), "utf-8")
    (folder / "documents.json").write_text(json.dumps(dict(firsts)), "utf-8")
    described = {**facts, "chunks": len(vectors), "documents": len(firsts), "queries": QUERIES, "warm_up": WARM_UP}
    (folder / "material.json").write_text(json.dumps(described), "utf-8")


def nearest(vectors: Vectors, queries: Vectors, allowed: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
    """Return int64[queries, 10]: the 10 vectors with the largest inner product with each query, unordered."""
    scores: list[Any] = []
    numbers: list[Any] = []
    for at in range(0, len(vectors), _BLOCK):
        block = queries @ vectors[at : at + _BLOCK].T
        if allowed is not None:
            block[:, ~allowed[at : at + _BLOCK]] = -np.inf
        best = np.argpartition(-block, min(NEAREST, block.shape[1] - 1), axis=1)[:, :NEAREST]
        scores.append(np.take_along_axis(block, best, axis=1))
        numbers.append(best + at)
    every, places = np.concatenate(scores, axis=1), np.concatenate(numbers, axis=1)
    chosen = np.argpartition(-every, min(NEAREST, every.shape[1] - 1), axis=1)[:, :NEAREST]
    return np.take_along_axis(places, chosen, axis=1)
