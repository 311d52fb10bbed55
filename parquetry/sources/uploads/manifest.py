"""The manifest of an upload: everything about it but its bytes. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from parquetry import ids
from parquetry.errors import BrokenDocument
from parquetry.masking import holds_credentials
from parquetry.model import Access, ChunkSize, Visibility
from parquetry.sources.uploads.identity import MOST_NAME, checked_name

Kind = Literal["upload", "url", "youtube", "text"]
MOST_BYTES = 256 * 1024
"""maximum bytes of a manifest, most of which are metadata"""
_MOST_DEPTH = 32
"""maximum nesting of metadata"""
_FORM = 1
"""form of the manifests that this program writes"""


@dataclass(frozen=True, slots=True)
class Upload:
    """A document that was handed in, without its bytes."""

    namespace: str
    path: str
    """identity within the namespace: name and owner"""
    filename: str
    content_type: str | None
    """media type as declared; a hint for names without an extension"""
    size: int
    """bytes"""
    content_hash: str
    metadata: Mapping[str, Any]
    """JSON values"""
    access: Access
    uploaded_by: str | None
    """user of the token that handed it in, at the last change"""
    created_at: datetime
    """UTC, when it was handed in first"""
    updated_at: datetime
    """UTC, when its content or anything about it changed last"""
    kind: Kind
    url: str | None
    """address of an imported page or video"""
    file: str = ""
    """name of the file with the bytes, within the upload's folder"""
    chunk_size: ChunkSize | None = None
    """None for the size in the settings"""
    describe: bool | None = None
    """True to have a picture described by the language model; None for the choice of the settings"""

    @property
    def etag(self) -> str:
        """Change token: of the bytes, of what they are read by, and of everything else, divided by dashes."""
        read_by: dict[str, Any] = {"filename": self.filename, "content_type": self.content_type}
        if self.describe is not None:
            read_by["describe"] = self.describe
        reading = ids.settings_hash(read_by)
        rest: dict[str, object] = {
            "metadata": self.metadata,
            "access": asdict(self.access),
            "uploaded_by": self.uploaded_by,
            "kind": self.kind,
            "times": [self.created_at.isoformat(), self.updated_at.isoformat()],
        }
        if self.chunk_size is not None:
            rest["chunk_size"] = asdict(self.chunk_size)
        return f"{self.content_hash}-{reading}-{ids.name_hash(_canonical(rest))}"

    def says_the_same_as(self, other: Upload) -> bool:
        """Return True if nothing changes where one upload replaces another, by whomever it is handed in."""
        same = replace(other, uploaded_by=self.uploaded_by, created_at=self.created_at, updated_at=self.updated_at)
        return (same.etag, same.url) == (self.etag, self.url)


def same_reading(one: str, other: str) -> bool:
    """Return True if the change tokens of two uploads show the same bytes, to be read in the same way."""
    return one.rpartition("-")[0] == other.rpartition("-")[0]


def new_upload(
    namespace: str,
    path: str,
    *,
    filename: str,
    content_type: str | None,
    size: int,
    content_hash: str,
    metadata: Mapping[str, Any],
    access: Access,
    uploaded_by: str | None,
    kind: Kind,
    url: str | None,
    now: datetime,
    chunk_size: ChunkSize | None = None,
    describe: bool | None = None,
) -> Upload:
    """Return an upload with everything checked and in the form in which it is stored.

    Raises:
        BrokenDocument: a name or address is too long, or the metadata are not JSON.
    """
    if kind not in get_args(Kind):
        raise BrokenDocument("bad-kind", f"an upload is one of {', '.join(get_args(Kind))}")
    if url is not None and holds_credentials(url):
        raise BrokenDocument("bad-url", "its URL holds credentials, which would be stored and shown")
    if len(content_type or "") > MOST_NAME or len(url or "") > MOST_NAME:
        raise BrokenDocument("name-too-long", f"content type and address have at most {MOST_NAME:,} characters")
    return Upload(
        namespace=namespace,
        path=path,
        filename=checked_name(filename),
        content_type=checked_name(content_type) if content_type else None,
        size=size,
        content_hash=content_hash,
        metadata=checked_metadata(metadata),
        access=checked_access(access),
        uploaded_by=None if uploaded_by is None else checked_name(uploaded_by),
        created_at=now,
        updated_at=now,
        kind=kind,
        url=None if url is None else checked_name(url),
        chunk_size=chunk_size,
        describe=describe,
    )


def encode(upload: Upload) -> bytes:
    """Return a manifest as it is stored.

    Raises:
        BrokenDocument: it is too large.
    """
    told = {**asdict(upload), "form": _FORM}
    told |= {name: getattr(upload, name).isoformat() for name in ("created_at", "updated_at")}
    if upload.chunk_size is None:
        # As manifests were before; an earlier program reads them.
        del told["chunk_size"]
    if upload.describe is None:
        del told["describe"]
    content = json.dumps(told, ensure_ascii=True, allow_nan=False, sort_keys=True).encode()
    if len(content) > MOST_BYTES:
        raise BrokenDocument(
            "metadata-too-large", f"metadata, tags and names take {len(content):,} bytes; {MOST_BYTES:,} are possible"
        )
    return content


def decode(content: bytes) -> Upload:
    """Return the upload of a stored manifest.

    Raises:
        ValueError: the manifest is damaged, or of a later program.
    """
    try:
        told = json.loads(content)
        if told.pop("form") != _FORM:
            raise ValueError("was written by a later version of Parquetry")
        access = told.pop("access")
        access["tags"] = tuple(access["tags"])
        created, updated = (
            datetime.fromisoformat(told.pop(name)).astimezone(UTC) for name in ("created_at", "updated_at")
        )
        size = told.pop("chunk_size", None)
        chunk_size = None if size is None else ChunkSize(int(size["tokens"]), int(size["overlap"]))
        upload = Upload(access=Access(**access), created_at=created, updated_at=updated, chunk_size=chunk_size, **told)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"is damaged ({type(error).__name__})") from error
    texts = (upload.namespace, upload.path, upload.filename, upload.content_hash, upload.file)
    if not all(isinstance(text, str) for text in texts) or not isinstance(upload.metadata, dict):
        raise ValueError("is damaged")
    if upload.describe not in (None, True, False):
        raise ValueError("is damaged")
    if "/" in upload.file or "\\" in upload.file or upload.file.startswith("."):
        raise ValueError("names a file outside its folder")
    return upload


def checked_access(access: Access) -> Access:
    if access.visibility not in get_args(Visibility):
        raise BrokenDocument("bad-access", f"visibility is one of {', '.join(get_args(Visibility))}")
    if access.visibility == "organization" and not access.org_id:
        raise BrokenDocument("bad-access", "visibility organization needs org_id")
    if access.visibility == "individual" and not access.user_id:
        raise BrokenDocument("bad-access", "visibility individual needs user_id")
    tags = tuple(checked_name(tag) for tag in access.tags)
    return replace(access, tags=tags)


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as plain JSON, in which every text is valid Unicode."""
    try:
        content = json.dumps(dict(metadata), allow_nan=False)
        if len(content) > 2 * MOST_BYTES:
            raise BrokenDocument("metadata-too-large", f"metadata may take {MOST_BYTES:,} bytes")
        checked: dict[str, Any] = _valid(json.loads(content), 0)
    except (TypeError, ValueError, RecursionError) as error:
        raise BrokenDocument(
            "bad-metadata", "metadata is a JSON object of texts, numbers, true, false, null, lists and objects"
        ) from error
    return checked


def _valid(value: Any, depth: int) -> Any:
    if depth > _MOST_DEPTH:
        raise ValueError("nested too deeply")
    match value:
        case str():
            # Halves of characters have no form in UTF-8.
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {_valid(key, depth): _valid(each, depth + 1) for key, each in value.items()}
        case list():
            return [_valid(each, depth + 1) for each in value]
        case _:
            return value


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
