"""The part of a current row of `documents` that a plan looks at for every document."""

from __future__ import annotations

from typing import NamedTuple

from parquetry.model import Access, Status


class DocumentOutline(NamedTuple):
    """Some fields of a row; the names are those of `DocumentRow`."""

    document_id: str
    namespace: str
    source: str
    path: str
    uri: str
    etag: str
    access: Access
    media_type: str | None
    size: int
    fingerprint: str
    status: Status
    error: str | None
    transient: bool
    revision: int
    characters: int
    tokens: int
