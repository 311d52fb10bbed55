"""Records of files, vector stores, attachments of files to stores, and batches of attachments."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from parquetry.model import Access, ChunkSize

AttachmentStatus = Literal["in_progress", "completed", "failed", "cancelled", "removing", "removed"]
SHOWN: tuple[AttachmentStatus, ...] = ("in_progress", "completed", "failed", "cancelled")
"""statuses of attachments that exist for callers"""
DAY = 24 * 3600
_SECOND = 1_000_000
_TIME_DIGITS = 13
"""hexadecimal digits of the time in an id"""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that was uploaded, without its bytes."""

    id: str
    filename: str
    bytes: int
    purpose: str
    content_type: str | None
    created_at: int
    """microseconds since 1970"""
    expires_at: int | None
    """microseconds since 1970; None if it does not expire"""
    namespace: str
    access: Access


@dataclass(frozen=True, slots=True)
class VectorStore:
    """A vector store, without its files."""

    id: str
    name: str
    namespace: str
    access: Access
    created_at: int
    """microseconds since 1970"""
    last_active_at: int
    """microseconds since 1970"""
    expires_days: int | None
    """days without activity after which it expires; None if it does not"""
    metadata: Mapping[str, str]
    description: str = ""
    expired: bool = False
    """True once its files were removed because it expired"""

    @property
    def expires_at(self) -> int | None:
        """Microseconds since 1970; None if it does not expire."""
        return None if self.expires_days is None else self.last_active_at + self.expires_days * DAY * _SECOND

    def is_expired(self, now: int) -> bool:
        """Return True if it expired by a time in microseconds since 1970."""
        return self.expired or (self.expires_at is not None and self.expires_at <= now)


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file in a vector store."""

    number: int
    """place in the order of attachments"""
    store_id: str
    file_id: str
    created_at: int
    """microseconds since 1970"""
    status: AttachmentStatus
    error: tuple[str, str] | None
    """code and message of the last failure"""
    attributes: Mapping[str, Any]
    chunk_size: ChunkSize
    job: str | None
    """job that carries out the last change; None until one is queued"""
    touched_at: int
    """microseconds since 1970, of the last change that was asked for"""
    usage_bytes: int

    @property
    def is_in_work(self) -> bool:
        """True if its last change is not known to be done; a cancelled file has a job until its document is removed."""
        return self.status in ("in_progress", "removing") or (self.status == "cancelled" and self.job is not None)


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Files that were attached together."""

    id: str
    store_id: str
    created_at: int
    """microseconds since 1970"""
    cancelled: bool


@dataclass(frozen=True, slots=True)
class Position:
    """Place in a list that is ordered by time, then by id."""

    created_at: int
    """microseconds since 1970"""
    id: str


def now() -> int:
    """Return microseconds since 1970."""
    return time.time_ns() // 1000


def new_id(prefix: str, created_at: int) -> str:
    """Return an id that cannot be guessed, and tells its place in a list even when its object is gone."""
    return f"{prefix}{created_at:0{_TIME_DIGITS}x}{secrets.token_hex(8)}"


def position_of(id: str, prefix: str) -> Position | None:
    """Return the place of an id that `new_id` made; None for any other text."""
    digits = id.removeprefix(prefix)
    if len(digits) != _TIME_DIGITS + 16 or not id.startswith(prefix):
        return None
    try:
        return Position(int(digits[:_TIME_DIGITS], 16), id)
    except ValueError:
        return None
