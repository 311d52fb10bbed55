"""Writes of the service: bytes are kept first, then a job publishes them, and its end is the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from parquetry import ids
from parquetry.errors import BrokenDocument
from parquetry.model import Access
from parquetry.serving.access.principals import Principal
from parquetry.serving.jobs.model import Job, Kind
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.withdrawing import change_of, handed_in
from parquetry.serving.service.resources import Resources
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.identity import UPLOADS, upload_path
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.store import Damaged

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
    path: str | None = None
    """path that identifies it, instead of one that follows from name and owner"""
    describe: bool | None = None
    """True to have a picture described; None for the choice of the settings"""

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


def describes(settings: Settings) -> bool:
    """Return True if pictures can be described one by one: there is a model, and a price if there is a budget."""
    return bool(settings.llm.model) and (settings.refresh.budget_usd is None or settings.llm.priced)


def names_there(resources: Resources, namespace: str, names: Sequence[str], access: Access) -> list[str]:
    """Return those of some names under which a document of this owner is kept, published or not."""

    def is_there(name: str) -> bool:
        with suppress(BrokenDocument):
            try:
                return resources.uploads.get(namespace, upload_path(name, access)) is not None
            except Damaged:
                return True
        # A name that cannot be kept is refused when it is sent.
        return False

    return [name for name in names if is_there(name)]


def ingest(
    resources: Resources,
    principal: Principal,
    namespace: str,
    contents: Sequence[NewContent],
    *,
    can_be_withdrawn: bool = False,
) -> Job:
    """Keep documents, and queue the job that publishes them.

    Args:
        resources: parts of the service.
        principal: maker of the request; becomes `uploaded_by`.
        namespace: namespace of the documents.
        contents: the documents, in the order of the answer.
        can_be_withdrawn: keep what they replace, so that cancelling the job brings it back.

    Raises:
        TransientError: too many jobs wait; nothing is kept.
    """
    resources.jobs.check_room(_owner_of(principal))
    uploads = [_kept(resources, principal, namespace, each, can_be_withdrawn) for each in contents]
    return submit(resources, principal, "ingest", namespace, {"uploads": uploads})


def _kept(
    resources: Resources, principal: Principal, namespace: str, new: NewContent, can_be_withdrawn: bool
) -> dict[str, Any]:
    """Keep a document; return it as the payload of its job names it."""
    before = _as_it_is(resources, namespace, new) if can_be_withdrawn else None
    upload, changed = resources.uploads.put(
        namespace,
        new.name,
        new.content,
        filename=new.filename,
        content_type=new.content_type,
        metadata=new.metadata,
        access=new.access,
        uploaded_by=principal.user_id,
        kind=new.kind,
        url=new.url,
        path=new.path,
        describe=new.describe,
    )
    if before is not None and changed:
        SetAside(resources.state).keep(change_of(upload), *before)
    return handed_in(upload, changed=changed and can_be_withdrawn, replaces=before is not None)


def _as_it_is(resources: Resources, namespace: str, new: NewContent) -> tuple[Upload, bytes] | None:
    """Return the upload that a new one replaces, with its bytes; None if there is none that can be read."""
    with suppress(Damaged, BrokenDocument):
        path = upload_path(new.name, new.access) if new.path is None and new.name is not None else new.path
        upload = None if path is None else resources.uploads.get(namespace, path)
        return None if upload is None else (upload, resources.uploads.read(upload))
    return None


def document_id_of(upload: Upload) -> str:
    """Return the id of the document that an upload becomes."""
    return ids.document_id(upload.namespace, UPLOADS, upload.path)
