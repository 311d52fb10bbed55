"""Files that other stores load, written as a stream."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquetry import ids
from parquetry.storage.exchange.chunk_stream import VisibleChunks

Format = Literal["parquet", "jsonl", "chroma", "llamaindex", "pgvector", "qdrant", "beir"]
FORMATS: tuple[Format, ...] = get_args(Format)
_ROW_GROUP = 8192
_CHROMA_ROWS = 500
"""rows added at once"""
_SCALARS = (str, int, float, bool)
_VECTOR = secrets.token_hex(16)
"""text that stands for a vector in a row"""
_Row = dict[str, Any]


@dataclass
class WrittenRows:
    """Rows of an export so far."""

    rows: int = 0
    without_vector: int = 0
    """chunks left out because they have no vector"""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format."""

    file: str
    """name of the file"""
    write: Callable[[VisibleChunks, IO[bytes]], WrittenRows]


def write_parquet(visible: VisibleChunks, stream: IO[bytes]) -> WrittenRows:
    """Write one row for each chunk; vectors are a list of fixed size, as LanceDB wants them."""
    import pyarrow.parquet as pq

    done = WrittenRows()
    kind = pa.list_(pa.float32(), visible.dimension)
    writer: pq.ParquetWriter | None = None
    waiting: list[pa.Table] = []

    def flush() -> None:
        nonlocal writer, waiting
        if waiting:
            table = pa.concat_tables(waiting)
            if writer is None:
                note = {b"parquetry.embedder": visible.embedder.encode()}
                writer = pq.ParquetWriter(stream, table.schema.with_metadata(note), compression="zstd")
            writer.write_table(table.replace_schema_metadata(writer.schema.metadata), row_group_size=_ROW_GROUP)
            waiting = []

    for batch in visible.chunks():
        place = batch.schema.get_field_index("vector")
        table = pa.Table.from_batches([batch])
        waiting.append(table.set_column(place, pa.field("vector", kind), table["vector"].cast(kind)))
        done.rows += batch.num_rows
        if sum(each.num_rows for each in waiting) >= _ROW_GROUP:
            flush()
    flush()
    if writer is not None:
        writer.close()
    return done


def _lines(line: Callable[[_Row], Mapping[str, Any]], *, needs_vector: bool) -> Callable[..., WrittenRows]:
    """Return the writer of a format with one JSON object for each chunk."""

    def write(visible: VisibleChunks, stream: IO[bytes]) -> WrittenRows:
        done = WrittenRows()
        for row, vector in _rows(visible, done, needs_vector=needs_vector):
            stream.write(_json(line(row), [vector] if row["vector"] else []))
        return done

    return write


def _row_line(row: _Row) -> _Row:
    return {**row, "metadata": json.loads(row["metadata"] or "{}"), "modified_at": row["modified_at"].isoformat()}


def _node_line(row: _Row) -> _Row:
    """Return a chunk as a `TextNode` of LlamaIndex."""
    source = {"node_id": row["document_id"], "node_type": "4", "metadata": {}, "class_name": "RelatedNodeInfo"}
    return {
        "id_": row["id"],
        "embedding": row["vector"],
        "metadata": _flat(row),
        "relationships": {"1": source},
        "text": row["text"],
        "start_char_idx": row["start"],
        "end_char_idx": row["end"],
        "class_name": "TextNode",
    }


def _point_line(row: _Row) -> _Row:
    """Return a chunk as a point of Qdrant, whose ids are UUIDs."""
    payload = {key: value for key, value in _row_line(row).items() if key != "vector"}
    return {"id": ids.point_id(row["id"]), "vector": row["vector"], "payload": payload}


def write_chroma(visible: VisibleChunks, stream: IO[bytes]) -> WrittenRows:
    """Write lines with the arguments of Chroma's `collection.add`."""
    done = WrittenRows()
    waiting: list[_Row] = []
    vectors: list[str] = []

    def flush() -> None:
        if waiting:
            columns = {
                "ids": [row["id"] for row in waiting],
                "embeddings": [row["vector"] for row in waiting],
                "documents": [row["text"] for row in waiting],
                "metadatas": [_flat(row) for row in waiting],
            }
            stream.write(_json(columns, vectors))
            waiting.clear()
            vectors.clear()

    for row, vector in _rows(visible, done, needs_vector=True):
        waiting.append(row)
        vectors.append(vector)
        if len(waiting) == _CHROMA_ROWS:
            flush()
    flush()
    return done


_TABLE = """CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE parquetry_chunks (
    id text PRIMARY KEY, document_id text, path text, uri text, title text, page integer, chunk_index integer,
    "start" bigint, "end" bigint, tokens integer, visibility text, org_id text, user_id text, tags jsonb,
    metadata jsonb, document text, embedding vector({dimension})
);
COPY parquetry_chunks FROM stdin;
"""
_COPIED = (
    *("id", "document_id", "path", "uri", "title", "page", "chunk_index", "start", "end", "tokens", "visibility"),
    *("org_id", "user_id", "tags", "metadata", "text", "vector"),
)
_COPY = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def write_pgvector(visible: VisibleChunks, stream: IO[bytes]) -> WrittenRows:
    """Write a script for psql: a table, and its rows as `pg_dump` writes them."""
    done = WrittenRows()
    stream.write(_TABLE.format(dimension=visible.dimension).encode())
    for row, vector in _rows(visible, done, needs_vector=True):
        row["tags"] = json.dumps(row["tags"] or [], ensure_ascii=False)
        # PostgreSQL's jsonb has no character 0.
        row["metadata"] = (row["metadata"] or "{}").replace("\\u0000", "")
        row["vector"] = vector
        values = ("\\N" if row[name] is None else str(row[name]).translate(_COPY) for name in _COPIED)
        stream.write(("\t".join(values) + "\n").encode())
    stream.write(b"\\.\n")
    return done


def write_beir(visible: VisibleChunks, stream: IO[bytes]) -> WrittenRows:
    """Write the documents as the `corpus.jsonl` of a BEIR dataset."""
    done = WrittenRows()
    for batch in visible.texts():
        for row in batch.to_pylist():
            told = {"namespace": row["namespace"], "uri": row["uri"]}
            stream.write(
                _json({"_id": row["document_id"], "title": row["title"], "text": row["text"], "metadata": told})
            )
            done.rows += 1
    return done


def _rows(visible: VisibleChunks, done: WrittenRows, *, needs_vector: bool) -> Iterator[tuple[_Row, str]]:
    """Yield chunks as rows with `_VECTOR` for their vectors, and the vectors as JSON; count them."""
    for batch in visible.chunks():
        vectors = _written(batch.column("vector"))
        rows = batch.drop_columns(["vector"]).to_pylist()
        for row, vector in zip(rows, vectors, strict=True):
            if needs_vector and vector is None:
                done.without_vector += 1
                continue
            row["vector"] = None if vector is None else _VECTOR
            done.rows += 1
            yield row, vector or ""


def _written(vectors: pa.Array) -> list[str | None]:
    """Return vectors as JSON: the shortest decimals that give the same float32."""
    listed = vectors.cast(pa.list_(pa.float32()))
    values = listed.values
    written = values.cast(pa.string())
    numbers = np.asarray(values)
    if (numbers == np.rint(numbers)).any():
        # Readers tell numbers from integers by the point.
        written = pc.replace_substring_regex(written, r"^(-?\d+)$", r"\1.0")
    lists = pa.ListArray.from_arrays(listed.offsets, written)
    joined = pc.binary_join(lists, ",").to_pylist()
    return [f"[{each}]" if known else None for each, known in zip(joined, vectors.is_valid().to_pylist(), strict=True)]


def _flat(row: _Row) -> dict[str, Any]:
    """Return what a chunk's metadata is in stores that take only texts and numbers."""
    told = {key: value for key, value in json.loads(row["metadata"] or "{}").items() if isinstance(value, _SCALARS)}
    named = {"file_path": row["path"], "file_name": row["filename"], "title": row["title"], "uri": row["uri"]}
    placed = {"document_id": row["document_id"], "chunk_index": row["chunk_index"], "page": row["page"]}
    tags = json.dumps(row["tags"], ensure_ascii=False) if row["tags"] else None
    seen = {"visibility": row["visibility"], "org_id": row["org_id"], "user_id": row["user_id"], "tags": tags}
    return {key: value for key, value in {**told, **named, **placed, **seen}.items() if value is not None}


def _json(value: Mapping[str, Any], vectors: Sequence[str] = ()) -> bytes:
    """Return a line of JSON, with vectors for each `_VECTOR` in turn."""
    first, *rest = json.dumps(value, ensure_ascii=False, separators=(",", ":")).split(f'"{_VECTOR}"')
    return "".join((first, *(part for pair in zip(vectors, rest, strict=True) for part in pair), "\n")).encode()


WRITERS: Mapping[Format, ExportFormat] = {
    "parquet": ExportFormat("chunks.parquet", write_parquet),
    "jsonl": ExportFormat("chunks.jsonl", _lines(_row_line, needs_vector=False)),
    "chroma": ExportFormat("chroma.jsonl", write_chroma),
    "llamaindex": ExportFormat("nodes.jsonl", _lines(_node_line, needs_vector=True)),
    "pgvector": ExportFormat("pgvector.sql", write_pgvector),
    "qdrant": ExportFormat("points.jsonl", _lines(_point_line, needs_vector=True)),
    "beir": ExportFormat("corpus.jsonl", write_beir),
}
