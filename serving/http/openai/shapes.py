"""Files and vector stores as OpenAI's objects. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from parquetry.serving.files.file_records import PartialUpload, UploadedPart
from parquetry.serving.files.model import SHOWN, FileBatch, KeptFile, StoreFile, VectorStore
from parquetry.serving.stores.attribute_filters import attributes_of
from parquetry.serving.stores.namespaces import file_id_of, store_id_of
from parquetry.serving.stores.outcomes import failure_of_document
from parquetry.serving.stores.search import StoreHit
from parquetry.serving.stores.upkeep import UPLOAD_SECONDS
from parquetry.storage.search.namespace_lists import NamespaceTotals

_US = 1_000_000


def file_shape(file: KeptFile) -> dict[str, Any]:
    """Return a file."""
    shape = {
        "id": file.id,
        "object": "file",
        "bytes": file.bytes,
        "created_at": file.created_at // _US,
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
    }
    if file.expires_at is not None:
        shape["expires_at"] = file.expires_at // _US
    return shape


def document_shape(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of a namespace as a file."""
    return {
        "id": file_id_of(row["document_id"]),
        "object": "file",
        "bytes": row["size"] or 0,
        "created_at": int(row["created_at"].timestamp()),
        "filename": row["filename"],
        "purpose": "user_data",
        "status": "processed" if row["status"] == "indexed" else "error",
    }


def list_shape(items: Sequence[Mapping[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """Return a page of a list; the ids of an empty one are empty texts."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else "",
        "last_id": items[-1]["id"] if items else "",
        "has_more": has_more,
    }


def deleted_shape(id: str, kind: str) -> dict[str, Any]:
    """Return the answer to a deletion."""
    return {"id": id, "object": kind, "deleted": True}


def store_shape(store: VectorStore, counts: Mapping[str, int], now: int) -> dict[str, Any]:
    """Return a vector store.

    Args:
        store: the store.
        counts: number of its files by status, and their `usage_bytes`.
        now: microseconds since 1970.
    """
    expired = store.is_expired(now)
    in_progress = counts.get("in_progress", 0)
    shape = {
        "id": store.id,
        "object": "vector_store",
        "created_at": store.created_at // _US,
        "name": store.name,
        "usage_bytes": counts.get("usage_bytes", 0),
        "file_counts": counts_shape(counts),
        "status": "expired" if expired else "in_progress" if in_progress else "completed",
        "expires_at": None if store.expires_at is None else store.expires_at // _US,
        "last_active_at": store.last_active_at // _US,
        "metadata": dict(store.metadata),
    }
    if store.description:
        shape["description"] = store.description
    if store.expires_days is not None:
        shape["expires_after"] = {"anchor": "last_active_at", "days": store.expires_days}
    return shape


def namespace_shape(totals: NamespaceTotals) -> dict[str, Any]:
    """Return a namespace as a vector store."""
    return {
        "id": store_id_of(totals.namespace),
        "object": "vector_store",
        "created_at": int(totals.created_at.timestamp()),
        "name": totals.namespace,
        "usage_bytes": totals.bytes,
        "file_counts": counts_shape({"completed": totals.indexed, "failed": totals.failed}),
        "status": "completed",
        "expires_at": None,
        "last_active_at": int(totals.indexed_at.timestamp()),
        "metadata": {"namespace": totals.namespace},
    }


def counts_shape(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of files by status."""
    shape: dict[str, int] = {status: counts.get(status, 0) for status in SHOWN}
    return {**shape, "total": sum(shape.values())}


def attachment_shape(attachment: StoreFile, denied: Collection[str]) -> dict[str, Any]:
    """Return a file of a vector store.

    Args:
        attachment: the file.
        denied: attributes that no caller may see.
    """
    size = attachment.chunk_size
    return {
        "id": attachment.file_id,
        "object": "vector_store.file",
        "usage_bytes": attachment.usage_bytes,
        "created_at": attachment.created_at // _US,
        "vector_store_id": attachment.store_id,
        "status": attachment.status,
        "last_error": _error_shape(attachment.error),
        "chunking_strategy": {
            "type": "static",
            "static": {"max_chunk_size_tokens": size.tokens, "chunk_overlap_tokens": size.overlap},
        },
        "attributes": {key: value for key, value in attachment.attributes.items() if key not in denied},
    }


def store_document_shape(row: Mapping[str, Any], denied: Collection[str], usage_bytes: int) -> dict[str, Any]:
    """Return a document of a namespace as a file of its vector store."""
    error = failure_of_document(row["status"], row["error"])
    return {
        "id": file_id_of(row["document_id"]),
        "object": "vector_store.file",
        "usage_bytes": usage_bytes,
        "created_at": int(row["created_at"].timestamp()),
        "vector_store_id": store_id_of(row["namespace"]),
        "status": "completed" if error is None else "failed",
        "last_error": _error_shape(error),
        "chunking_strategy": {"type": "other"},
        "attributes": attributes_of(row["metadata"], denied),
    }


def _error_shape(error: tuple[str, str] | None) -> dict[str, str] | None:
    return None if error is None else {"code": error[0], "message": error[1]}


def batch_shape(batch: FileBatch, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a batch: `failed` if all of its files are."""
    numbers = counts_shape(counts)
    if batch.cancelled:
        status = "cancelled"
    elif numbers["in_progress"]:
        status = "in_progress"
    else:
        status = "failed" if numbers["failed"] and numbers["failed"] == numbers["total"] else "completed"
    return {
        "id": batch.id,
        "object": "vector_store.files_batch",
        "created_at": batch.created_at // _US,
        "vector_store_id": batch.store_id,
        "status": status,
        "file_counts": numbers,
    }


def results_shape(queries: Sequence[str], hits: Sequence[StoreHit], next_page: str | None) -> dict[str, Any]:
    """Return a page of search results."""
    return {
        "object": "vector_store.search_results.page",
        "search_query": list(queries),
        "data": [
            {
                "file_id": hit.file_id,
                "filename": hit.filename,
                "score": hit.score,
                "attributes": hit.attributes,
                "content": [{"type": "text", "text": text} for text in hit.texts],
            }
            for hit in hits
        ],
        "has_more": next_page is not None,
        "next_page": next_page,
    }


def content_shape(texts: Sequence[str], next_page: str | None) -> dict[str, Any]:
    """Return a page of the text of a file."""
    return {
        "object": "vector_store.file_content.page",
        "data": [{"type": "text", "text": text} for text in texts],
        "has_more": next_page is not None,
        "next_page": next_page,
    }


def upload_shape(upload: PartialUpload, file: KeptFile | None, now: int) -> dict[str, Any]:
    """Return a file that arrives in parts."""
    expires = upload.created_at + UPLOAD_SECONDS * _US
    expired = upload.status == "pending" and expires <= now
    return {
        "id": upload.id,
        "object": "upload",
        "bytes": upload.bytes,
        "created_at": upload.created_at // _US,
        "filename": upload.filename,
        "purpose": upload.purpose,
        "status": "expired" if expired else upload.status,
        "expires_at": expires // _US,
        "file": None if file is None else file_shape(file),
    }


def part_shape(part: UploadedPart) -> dict[str, Any]:
    """Return a part."""
    return {
        "id": part.id,
        "object": "upload.part",
        "created_at": part.created_at // _US,
        "upload_id": part.upload_id,
    }
