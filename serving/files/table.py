"""Tables of `stores.db`, and their rows as objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from parquetry.model import Access, ChunkSize
from parquetry.serving.files.model import FileBatch, KeptFile, StoreFile, VectorStore

FILE = "stores.db"
_OWNER = "namespace TEXT NOT NULL, visibility TEXT NOT NULL, org_id TEXT, user_id TEXT"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS files (
    id TEXT PRIMARY KEY, filename TEXT NOT NULL, bytes INTEGER NOT NULL, purpose TEXT NOT NULL, content_type TEXT,
    created_at INTEGER NOT NULL, expires_at INTEGER, {_OWNER}, deleted INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS files_by_time ON files (created_at);
CREATE TABLE IF NOT EXISTS stores (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, {_OWNER}, created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL,
    expires_days INTEGER, metadata TEXT NOT NULL, expired INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS attachments (
    number INTEGER PRIMARY KEY AUTOINCREMENT, store_id TEXT NOT NULL, file_id TEXT NOT NULL,
    created_at INTEGER NOT NULL, status TEXT NOT NULL, error_code TEXT, error_message TEXT,
    attributes TEXT NOT NULL, chunk_tokens INTEGER NOT NULL, chunk_overlap INTEGER NOT NULL, job TEXT,
    touched_at INTEGER NOT NULL, usage_bytes INTEGER NOT NULL DEFAULT 0, UNIQUE (store_id, file_id)
) STRICT;
CREATE INDEX IF NOT EXISTS attachments_of_files ON attachments (file_id);
CREATE INDEX IF NOT EXISTS attachments_in_work ON attachments (status) WHERE status IN ('in_progress', 'removing');
CREATE INDEX IF NOT EXISTS attachments_cancelled ON attachments (job) WHERE status = 'cancelled' AND job IS NOT NULL;
CREATE TABLE IF NOT EXISTS batches (
    id TEXT PRIMARY KEY, store_id TEXT NOT NULL, created_at INTEGER NOT NULL, cancelled INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS batch_files (
    batch_id TEXT NOT NULL, file_id TEXT NOT NULL, PRIMARY KEY (batch_id, file_id)
) STRICT;
CREATE TABLE IF NOT EXISTS uploads (
    id TEXT PRIMARY KEY, filename TEXT NOT NULL, bytes INTEGER NOT NULL, purpose TEXT NOT NULL, content_type TEXT,
    created_at INTEGER NOT NULL, {_OWNER}, status TEXT NOT NULL, file_id TEXT, file_seconds INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS parts (
    id TEXT PRIMARY KEY, upload_id TEXT NOT NULL, created_at INTEGER NOT NULL, bytes INTEGER NOT NULL
) STRICT
"""
ADDED = (("stores", "description TEXT NOT NULL DEFAULT ''"),)
"""columns that the schema of older versions lacks"""
_OWNER_COLUMNS = "namespace, visibility, org_id, user_id"
FILES = f"id, filename, bytes, purpose, content_type, created_at, expires_at, {_OWNER_COLUMNS}"
STORES = f"id, name, created_at, last_active_at, expires_days, metadata, expired, description, {_OWNER_COLUMNS}"
ATTACHMENTS = (
    "number, store_id, file_id, created_at, status, error_code, error_message, attributes, chunk_tokens, "
    "chunk_overlap, job, touched_at, usage_bytes"
)
BATCHES = "id, store_id, created_at, cancelled"


def file_of(row: Sequence[Any]) -> KeptFile:
    """Return the file of a row with the columns `FILES`."""
    id_, filename, size, purpose, content_type, created, expires, namespace = row[:8]
    return KeptFile(id_, filename, size, purpose, content_type, created, expires, namespace, access_of(row[8:]))


def store_of(row: Sequence[Any]) -> VectorStore:
    """Return the store of a row with the columns `STORES`."""
    id_, name, created, active, days, metadata, expired, description, namespace = row[:9]
    access, labels = access_of(row[9:]), json.loads(metadata)
    return VectorStore(id_, name, namespace, access, created, active, days, labels, description, bool(expired))


def attachment_of(row: Sequence[Any]) -> StoreFile:
    """Return the attachment of a row with the columns `ATTACHMENTS`."""
    number, store, file, created, status, code, message, attributes, tokens, overlap, job, touched, usage = row
    error = None if code is None else (code, message or "")
    size = ChunkSize(tokens, overlap)
    return StoreFile(number, store, file, created, status, error, json.loads(attributes), size, job, touched, usage)


def batch_of(row: Sequence[Any]) -> FileBatch:
    """Return the batch of a row with the columns `BATCHES`."""
    return FileBatch(row[0], row[1], row[2], bool(row[3]))


def access_of(values: Sequence[Any]) -> Access:
    """Return the access of the last columns of an owner: visibility, organization, user."""
    visibility, org_id, user_id = values
    return Access(visibility, org_id, user_id)


def owner_values(namespace: str, access: Access) -> tuple[str, str, str | None, str | None]:
    """Return the values of the columns of an owner."""
    return namespace, access.visibility, access.org_id, access.user_id


def json_of(value: object) -> str:
    """Return a value as the tables keep it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
