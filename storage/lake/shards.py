"""Write the Parquet shards of one batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquetry.model import Chunk, DocumentRow, Extraction, Heading, Note, Part, Quality
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake import schema
from parquetry.storage.lake.lineage import note_of

if TYPE_CHECKING:
    from parquetry.planning.rows import RunStamp

Vectors = npt.NDArray[np.float32]
_ROW_GROUP_ROWS = 8192
_PART_FIELDS = attrgetter(*(field.name for field in fields(Part)))
_QUALITY = tuple(field.name for field in fields(Quality))
_HEADING_FIELDS = attrgetter(*(field.name for field in fields(Heading)))


@dataclass(frozen=True, slots=True)
class Shard:
    """A completely written Parquet file that is not yet part of its table."""

    table: Table
    name: str
    """file name within the table's folder"""
    size: int
    """bytes"""
    rows: int
    sha256: str
    """SHA-256 of the content, as hexadecimal digits"""


@dataclass(frozen=True, slots=True)
class StoredText:
    """The stored data of a revision besides its chunks: enough to chunk it again without its source."""

    revision: int
    text: str
    parts: tuple[Part, ...]
    headings: tuple[Heading, ...]
    metadata: Mapping[str, Any] | None = None
    """an upload's own metadata, without those that were handed in with it; None for other documents"""
    quality: Quality | None = None
    """None for texts stored without"""


@dataclass(frozen=True, slots=True)
class RevisionChunks:
    """The chunks of one revision, whose vectors are rows of a separate array."""

    revision: int
    chunks: Sequence[Chunk]
    texts: Sequence[str]
    tokens: Sequence[int]
    text_hashes: Sequence[str]


def stored_text(revision: int, extraction: Extraction, *, with_metadata: bool = False) -> StoredText:
    metadata = extraction.metadata if with_metadata else None
    return StoredText(revision, extraction.text, extraction.parts, extraction.headings, metadata, extraction.quality)


def structure_json(text: StoredText) -> str:
    """Return parts, headings, metadata and quality as JSON, small: parts are arrays in the order of their fields."""
    parts = [_PART_FIELDS(part) for part in text.parts]
    headings = [_HEADING_FIELDS(heading) for heading in text.headings]
    metadata = {} if text.metadata is None else {"metadata": dict(text.metadata)}
    quality = {} if text.quality is None else {"quality": _known(text.quality)}
    told = {"parts": parts, "headings": headings, **metadata, **quality}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _known(quality: Quality) -> dict[str, Any]:
    return {name: value for name in _QUALITY if (value := getattr(quality, name)) is not None}


def parse_structure(
    structure: str,
) -> tuple[tuple[Part, ...], tuple[Heading, ...], dict[str, Any] | None, Quality | None]:
    """Return the parts, headings, metadata and quality that `structure_json` wrote."""
    values = json.loads(structure)
    parts = tuple(Part(*part) for part in values["parts"])
    headings = tuple(Heading(*heading) for heading in values["headings"])
    return parts, headings, values.get("metadata"), _parse_quality(values.get("quality"))


def _parse_quality(values: Mapping[str, Any] | None) -> Quality | None:
    if values is None:
        return None
    # A later program may know more.
    kept = {name: values[name] for name in _QUALITY if name in values}
    for name in kept.keys() & {"without_text", "unread"}:
        kept[name] = tuple(kept[name])
    if "ocr" in kept:
        kept["ocr"] = tuple((number, confidence) for number, confidence in kept["ocr"])
    return Quality(**kept)


def write_texts(layout: Layout, name: str, texts: Sequence[StoredText], embedder: str, vectors: Vectors) -> Shard:
    """Write the `texts` rows of a batch.

    Args:
        layout: layout of the corpus.
        name: name of the file.
        texts: one per revision.
        embedder: id of the model behind the vectors.
        vectors: float32[len(texts), dimension], the document-level vectors.
    """
    table = pa.table(
        {
            "revision": pa.array([text.revision for text in texts], pa.int64()),
            "text": pa.array([text.text for text in texts], pa.string()),
            "structure": pa.array([structure_json(text) for text in texts], pa.string()),
            "embedder": pa.array([embedder] * len(texts), pa.string()),
            "vector": _lists(vectors),
        },
        schema=schema.TEXTS,
    )
    return write_shard(layout, "texts", name, table)


def write_chunks(
    layout: Layout, name: str, revisions: Sequence[RevisionChunks], embedder: str, vectors: Vectors
) -> Shard:
    """Write the `chunks` rows of a batch.

    Args:
        layout: layout of the corpus.
        name: name of the file.
        revisions: the batch's revisions.
        embedder: id of the model behind the vectors.
        vectors: float32[n, dimension] for the n chunks of all revisions, in their order; a zero row stands for a chunk
            without a vector and is stored as NULL.
    """
    flat = [(revision.revision, chunk) for revision in revisions for chunk in revision.chunks]
    table = pa.table(
        {
            "revision": pa.array([revision for revision, _ in flat], pa.int64()),
            "chunk_index": pa.array([chunk.index for _, chunk in flat], pa.int32()),
            "start": pa.array([chunk.start for _, chunk in flat], pa.int64()),
            "end": pa.array([chunk.end for _, chunk in flat], pa.int64()),
            "kind": pa.array([chunk.kind for _, chunk in flat], pa.string()),
            "page": pa.array([chunk.page for _, chunk in flat], pa.int32()),
            "headings": pa.array([chunk.headings for _, chunk in flat], pa.list_(pa.string())),
            "text": pa.array([text for revision in revisions for text in revision.texts], pa.string()),
            "tokens": pa.array([count for revision in revisions for count in revision.tokens], pa.int32()),
            "text_hash": pa.array([key for revision in revisions for key in revision.text_hashes], pa.string()),
            "embedder": pa.array([embedder] * len(flat), pa.string()),
            "vector": _lists(vectors),
        },
        schema=schema.CHUNKS,
    )
    return write_shard(layout, "chunks", name, table)


def documents_in_parts(rows: Iterator[DocumentRow]) -> Iterator[pa.Table]:
    """Yield tables of rows of `documents`, each of one row group."""
    groups = iter(lambda: list(islice(rows, _ROW_GROUP_ROWS)), [])
    return map(schema.documents_table, groups)


def write_notes(layout: Layout, name: str, notes: Sequence[Note], stamp: RunStamp) -> Shard:
    """Write the `notes` rows of a batch.

    Args:
        layout: layout of the corpus.
        name: name of the file.
        notes: notes on documents of the batch; the row of a revision in `documents` names its document.
        stamp: stamp of the run.
    """
    table = pa.table(
        {
            "revision": pa.array([note.revision for note in notes], pa.int64()),
            "stage": [note.stage for note in notes],
            "note": [note.text for note in notes],
            "run_id": [stamp.run_id] * len(notes),
            "noted_at": [stamp.at] * len(notes),
        },
        schema=schema.NOTES,
    )
    return write_shard(layout, "notes", name, table)


def write_shard(layout: Layout, table: Table, name: str, rows: pa.Table, *, replaces: Sequence[str] = ()) -> Shard:
    """Write one Parquet file under its final name, completely or not at all; secrets in its messages are masked.

    Args:
        layout: layout of the corpus.
        table: table of the shard.
        name: name of the file.
        rows: rows of the table.
        replaces: names of the shards whose rows it holds, noted in the file; for a compaction.
    """
    return write_shard_of_parts(layout, table, name, [rows], replaces=replaces)


def write_shard_of_parts(
    layout: Layout, table: Table, name: str, parts: Iterable[pa.Table], *, replaces: Sequence[str] = ()
) -> Shard:
    """Write one Parquet file as `write_shard`, with only one part of its rows in memory at a time.

    Args:
        layout: layout of the corpus.
        table: table of the shard.
        name: name of the file.
        parts: the rows in their order, at least one table of them, all of the same schema.
        replaces: as for `write_shard`.
    """
    import pyarrow.parquet as pq

    masked = (schema.without_secrets(table, part) for part in parts)
    first = next(masked)
    if replaces:
        first = first.replace_schema_metadata(note_of(replaces))
    # Float vectors do not compress; everything else does.
    columns: Mapping[str, str] = {
        column: "NONE" if column == "vector.list.element" else "ZSTD" for column in _leaves(first.schema)
    }
    count = 0

    def fill(sink: pa.NativeFile) -> None:
        nonlocal count
        with pq.ParquetWriter(
            sink,
            first.schema,
            compression=columns,
            use_dictionary=["embedder", "kind"],
            write_page_checksum=True,
        ) as writer:
            for part in chain((first,), masked):
                writer.write_table(part, row_group_size=_ROW_GROUP_ROWS)
                count += part.num_rows

    written = filesystem_at(layout.root).write(layout.shard(table, name), fill)
    return Shard(table, name, written.size, count, written.sha256)


def _leaves(columns: pa.Schema) -> list[str]:
    return [f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name for field in columns]


def _lists(vectors: Vectors) -> pa.ListArray:
    """Convert rows to lists; a zero row has no direction, would compare as NaN, and becomes NULL."""
    missing = set(np.flatnonzero(~vectors.any(axis=1)).tolist())
    if missing:
        rows = [None if index in missing else row for index, row in enumerate(vectors.tolist())]
        return pa.array(rows, pa.list_(pa.float32()))
    count, dimension = vectors.shape
    offsets = (
        np.arange(0, (count + 1) * dimension, dimension, dtype=np.int32) if dimension else np.zeros(count + 1, np.int32)
    )
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(vectors).ravel()))
