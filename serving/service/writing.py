"""Writes of the service: bytes are kept first, then a job publishes them, and its end is the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from parquetry import ids
from parquetry.model import Access
from parquetry.serving.access.principals import Principal
from parquetry.serving.jobs.model import Job, Kind
from parquetry.serving.service.resources import Resources
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import Upload

LARGE_BYTES = 8 * 1024 * 1024
"""bytes of a document from which on an answer warns that it takes long"""


@dataclass(frozen=True, slots=True)
class NewContent:
    """A document to keep and publish."""

    content: bytes | Path
    filename: str
    access: Access
    name: str | None = None
    """identity within namespace and owner; None for the hash of the content"""
    content_type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["upload", "url", "youtube", "text"] = "upload"
    url: str | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return self.content.stat().st_size if isinstance(self.content, Path) else len(self.content)

    @property
    def warnings(self) -> list[str]:
        """Remarks for the one who sent it."""
        if self.size <= LARGE_BYTES:
            return []
        return [f"{self.filename} has {self.size / 1024**2:.1f} MiB; documents above 8 MiB take long to index"]


def submit(
    resources: Resources, principal: Principal, kind: Kind, namespace: str | None, payload: Mapping[str, Any]
) -> Job:
    """Queue a job on behalf of a principal."""
    return resources.jobs.submit(kind, namespace, payload, _owner_of(principal))


def _owner_of(principal: Principal) -> dict[str, str | None]:
    return {"user_id": principal.user_id, "org_id": principal.org_id, "token_id": principal.token_id}


def ingest(resources: Resources, principal: Principal, namespace: str, contents: Sequence[NewContent]) -> Job:
    """Keep documents, and queue the job that publishes them.

    Args:
        resources: parts of the service.
        principal: maker of the request; becomes `uploaded_by`.
        namespace: namespace of the documents.
        contents: the documents, in the order of the answer.

    Raises:
        TransientError: too many jobs wait; nothing is kept.
    """
    resources.jobs.check_room(_owner_of(principal))
    kept = [
        resources.uploads.put(
            namespace,
            each.name,
            each.content,
            filename=each.filename,
            content_type=each.content_type,
            metadata=each.metadata,
            access=each.access,
            uploaded_by=principal.user_id,
            kind=each.kind,
            url=each.url,
        )[0]
        for each in contents
    ]
    payload = {"uploads": [{"namespace": namespace, "path": upload.path} for upload in kept]}
    return submit(resources, principal, "ingest", namespace, payload)


def document_id_of(upload: Upload) -> str:
    """Return the id of the document that an upload becomes."""
    return ids.document_id(upload.namespace, UPLOADS, upload.path)
