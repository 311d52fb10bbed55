"""Objects as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Read:
    """Content of an object and its properties at the time of the read."""

    content: bytes
    etag: str
    """as written by the server"""
    modified_at: datetime
    """UTC"""
