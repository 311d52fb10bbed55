"""Arrow schemas of the tables. Opens nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa

from parquetry.masking import masked, without_known
from parquetry.model import Access, DocumentRow, Failure
from parquetry.storage.files.layout import Table

_TIME = pa.timestamp("us", tz="UTC")

DOCUMENTS = pa.schema(
    [
        ("document_id", pa.string()),
        ("namespace", pa.string()),
        ("source", pa.string()),
        ("path", pa.string()),
        ("uri", pa.string()),
        ("filename", pa.string()),
        ("title", pa.string()),
        ("media_type", pa.string()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        ("modified_at", _TIME),
        ("content_hash", pa.string()),
        ("revision", pa.int64()),
        ("sequence", pa.int64()),
        ("removed", pa.bool_()),
        ("fingerprint", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("attempts", pa.int32()),
        ("transient", pa.bool_()),
        ("extractor", pa.string()),
        ("embedder", pa.string()),
        ("pages", pa.int32()),
        ("characters", pa.int64()),
        ("chunks", pa.int32()),
        ("tokens", pa.int64()),
        ("visibility", pa.string()),
        ("org_id", pa.string()),
        ("user_id", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("metadata", pa.string()),
        ("uploaded_by", pa.string()),
        ("created_at", _TIME),
        ("indexed_at", _TIME),
        ("run_id", pa.string()),
    ]
)

TEXTS = pa.schema(
    [
        ("revision", pa.int64()),
        ("text", pa.string()),
        ("structure", pa.string()),
        ("embedder", pa.string()),
        ("vector", pa.list_(pa.float32())),
    ]
)

CHUNKS = pa.schema(
    [
        ("revision", pa.int64()),
        ("chunk_index", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("kind", pa.string()),
        ("page", pa.int32()),
        ("headings", pa.list_(pa.string())),
        ("text", pa.string()),
        ("tokens", pa.int32()),
        ("text_hash", pa.string()),
        ("embedder", pa.string()),
        ("vector", pa.list_(pa.float32())),
    ]
)

NOTES = pa.schema(
    [
        ("revision", pa.int64()),
        ("stage", pa.string()),
        ("note", pa.string()),
        ("run_id", pa.string()),
        ("noted_at", _TIME),
    ]
)

RUNS = pa.schema(
    [
        ("run_id", pa.string()),
        ("kind", pa.string()),
        ("status", pa.string()),
        ("started_at", _TIME),
        ("seconds", pa.float64()),
        ("namespaces", pa.list_(pa.string())),
        ("version_before", pa.int64()),
        ("version_after", pa.int64()),
        ("scanned", pa.int64()),
        ("added", pa.int64()),
        ("changed", pa.int64()),
        ("moved", pa.int64()),
        ("permissions", pa.int64()),
        ("unchanged", pa.int64()),
        ("removed", pa.int64()),
        ("failed", pa.int64()),
        ("skipped", pa.int64()),
        ("chunks_written", pa.int64()),
        ("chunks_embedded", pa.int64()),
        ("chunks_reused", pa.int64()),
        ("bytes_read", pa.int64()),
        ("tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("failures_by_reason", pa.string()),
        ("error", pa.string()),
        ("sources", pa.list_(pa.string())),
        ("costs", pa.string()),
        ("estimated_usd", pa.float64()),
        ("seconds_by_stage", pa.string()),
        ("slowest", pa.string()),
    ]
)

FAILURES = pa.schema(
    [
        ("run_id", pa.string()),
        ("document_id", pa.string()),
        ("namespace", pa.string()),
        ("source", pa.string()),
        ("uri", pa.string()),
        ("status", pa.string()),
        ("stage", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("attempts", pa.int32()),
    ]
)

SEARCHES = pa.schema(
    [
        ("searched_at", _TIME),
        ("query", pa.string()),
        ("mode", pa.string()),
        ("level", pa.string()),
        ("k", pa.int32()),
        ("caller", pa.bool_()),
        ("version", pa.int64()),
        ("count", pa.int32()),
        ("mean_score", pa.float64()),
        ("best_score", pa.float64()),
        ("seconds", pa.float64()),
        ("cached", pa.bool_()),
    ]
)

ENTRIES = pa.schema(
    [
        ("entry_id", pa.string()),
        ("namespace", pa.string()),
        ("sequence", pa.int64()),
        ("run_id", pa.string()),
        ("revision", pa.int64()),
        ("kind", pa.string()),
        ("text", pa.string()),
        ("visibility", pa.string()),
        ("org_id", pa.string()),
        ("user_id", pa.string()),
        ("confidence", pa.float64()),
        ("valid_from", _TIME),
        ("created_at", _TIME),
        ("decision_id", pa.string()),
    ]
)

DECISIONS = pa.schema(
    [
        ("decision_id", pa.string()),
        ("namespace", pa.string()),
        ("sequence", pa.int64()),
        ("run_id", pa.string()),
        ("base", pa.int64()),
        ("number", pa.int32()),
        ("at", _TIME),
        ("kind", pa.string()),
        ("judge", pa.string()),
        ("session_id", pa.string()),
        ("session_uri", pa.string()),
        ("session_user", pa.string()),
        ("said_at", _TIME),
        ("evidence", pa.list_(pa.string())),
        ("text", pa.string()),
        ("entry_kind", pa.string()),
        ("visibility", pa.string()),
        ("org_id", pa.string()),
        ("user_id", pa.string()),
        ("confidence", pa.float64()),
        ("entry_id", pa.string()),
        ("adds", pa.list_(pa.string())),
        ("retires", pa.list_(pa.string())),
        ("links", pa.list_(pa.string())),
        ("candidates", pa.string()),
        ("reasoning", pa.string()),
        ("reason", pa.string()),
        ("undoes", pa.string()),
        ("model", pa.string()),
        ("prompt", pa.string()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
    ]
)

RETENTION = pa.schema(
    [
        ("sequence", pa.int64()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("version", pa.int64()),
        ("at", _TIME),
    ]
)

MIGRATIONS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("key", pa.string()),
        ("state", pa.string()),
        ("target", pa.string()),
        ("at", _TIME),
    ]
)

SCHEMAS: dict[Table, pa.Schema] = {
    "documents": DOCUMENTS,
    "texts": TEXTS,
    "chunks": CHUNKS,
    "notes": NOTES,
    "entries": ENTRIES,
    "decisions": DECISIONS,
    "runs": RUNS,
    "failures": FAILURES,
    "searches": SEARCHES,
    "retention": RETENTION,
    "migrations": MIGRATIONS,
}

MESSAGES: Mapping[Table, Mapping[str, Callable[[str], str]]] = {
    "documents": {"error": masked},
    "notes": {"note": masked},
    "decisions": {"reasoning": masked, "text": without_known},
    "runs": {"error": masked},
    "failures": {"detail": masked},
}
"""columns with messages of a service, a library or a model rather than content of documents, each with its masking
function"""

DUCKDB_TYPES = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
    _TIME: "TIMESTAMP WITH TIME ZONE",
    pa.list_(pa.string()): "VARCHAR[]",
    pa.list_(pa.float32()): "FLOAT[]",
}
"""DuckDB types for views over tables that have no shard yet"""


def without_secrets(table: Table, rows: pa.Table) -> pa.Table:
    """Return the rows of a table with secrets in messages masked."""
    for name, mask in MESSAGES.get(table, {}).items():
        column = rows[name].combine_chunks()
        # Without PyArrow's own functions, whose import takes longer than a run that finds nothing new spends here.
        said = {message: mask(message) for message in set(column.to_pylist()) if message}
        if any(message != shown for message, shown in said.items()):
            shown = pa.array([said.get(message, message) for message in column.to_pylist()], column.type)
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), shown)
    return rows


_ACCESS = {field.name for field in fields(Access)}
_ROW_FIELDS = [field.name for field in fields(DocumentRow) if field.name not in ("access", "metadata")]
_SHARED = (
    "namespace",
    "source",
    "media_type",
    "fingerprint",
    "error",
    "extractor",
    "embedder",
    "uploaded_by",
    "created_at",
    "indexed_at",
    "run_id",
)
"""columns with few different values"""


def documents_table(rows: Sequence[DocumentRow]) -> pa.Table:
    """Build rows of the table `documents`."""
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in _ROW_FIELDS}
    for name in _ACCESS:
        columns[name] = [getattr(row.access, name) for row in rows]
    columns["metadata"] = [json.dumps(dict(row.metadata), ensure_ascii=False, sort_keys=True) for row in rows]
    return pa.table(columns, schema=DOCUMENTS)


class DocumentRows:
    """Convert stored values to rows of `documents`; values that many rows share are in memory once."""

    def __init__(self) -> None:
        self._metadata: dict[str, dict[str, Any]] = {}
        self._shared: dict[Any, Any] = {}

    def row(self, values: Mapping[str, Any]) -> DocumentRow:
        """Return a row from its values by column name."""
        told = values["metadata"] or "{}"
        if told not in self._metadata:
            self._metadata[told] = json.loads(told)
        access = Access(values["visibility"], values["org_id"], values["user_id"], tuple(values["tags"] or ()))
        fields_of_row = {name: values[name] for name in _ROW_FIELDS}
        for name in _SHARED:
            fields_of_row[name] = self._shared.setdefault(values[name], values[name])
        return DocumentRow(
            access=self._shared.setdefault(access, access), metadata=self._metadata[told], **fields_of_row
        )


def failures_table(failures: Sequence[Failure]) -> pa.Table:
    """Build rows of the table `failures`."""
    return pa.table(
        {name: [getattr(failure, name) for failure in failures] for name in FAILURES.names}, schema=FAILURES
    )
