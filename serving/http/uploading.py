"""Uploads in requests: JSON with text or base64, forms with files, and addresses to import."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.datastructures import UploadFile

from parquetry.model import Access
from parquetry.plural import size_of
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import access_for
from parquetry.serving.http.callers import check_again
from parquetry.serving.http.json_bodies import json_of
from parquetry.serving.http.problems import Problem
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.writing import NewContent
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.importing import fetch_url

Form = TypeVar("Form", bound=BaseModel)
_MULTIPART = "multipart/form-data"
_FILE = "file"
_MOST_FIELDS = 50
_TEXTS = frozenset(
    {
        "application/json",
        "application/ld+json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/javascript",
        "application/x-ndjson",
        "application/sql",
        "image/svg+xml",
    }
)
"""media types besides `text/*` whose content is sent as it is"""


@dataclass(frozen=True, slots=True)
class UploadForm:
    """An upload as it arrived."""

    fields: Any
    """the validated form; its `content` is empty if there is a file"""
    file: bytes | None

    @classmethod
    async def read(cls, request: Request, form: type[BaseModel]) -> UploadForm:
        """Read the body of a request, JSON or `multipart/form-data`.

        Args:
            request: the request.
            form: model of its fields, with `content` and `filename` among them.

        Raises:
            NotAuthenticated: the token was revoked meanwhile.
            RequestValidationError: a field is missing, unknown or invalid.
        """
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _MULTIPART:
            body = await request.body()
            check_again(request)
            return cls(_checked(form, await json_of(body)), None)
        async with request.form(max_files=1, max_fields=_MOST_FIELDS) as sent:
            check_again(request)
            file = sent.get(_FILE)
            if not isinstance(file, UploadFile):
                raise Problem(422, "invalid-request", f"the form has no file in a field named {_FILE!r}")
            given: dict[str, Any] = {"content": "", "filename": file.filename or "", "contentType": file.content_type}
            for name in sent:
                if name != _FILE:
                    values = [value for value in sent.getlist(name) if isinstance(value, str)]
                    given[name] = _field(name, values)
            return cls(_checked(form, given), await file.read())

    @staticmethod
    def openapi(form: type[BaseModel]) -> dict[str, Any]:
        """Return the description of the body for OpenAPI."""
        schema = form.model_json_schema(by_alias=True)
        fields = {name: value for name, value in schema["properties"].items() if name not in ("content", "filename")}
        multipart = {
            "type": "object",
            "properties": {_FILE: {"type": "string", "format": "binary"}, **fields},
            "required": [_FILE],
        }
        content = {"application/json": {"schema": schema}, _MULTIPART: {"schema": multipart}}
        return {"requestBody": {"required": True, "content": content}}


def _field(name: str, values: list[str]) -> Any:
    """Return the value of a field of a form: lists are repeated fields, objects are JSON."""
    if name == "tags":
        return values
    value = values[-1] if values else ""
    if name == "metadata":
        try:
            return from_json(value, allow_inf_nan=False)
        except ValueError:
            raise Problem(422, "invalid-request", "metadata: not a JSON object") from None
    return value


def _checked(form: type[Form], given: Any) -> Form:
    try:
        return form.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None


async def new_content(form: UploadForm, parts: Resources, caller: Principal) -> NewContent:
    """Return the document of an upload, decoded, with the access that its caller may give it.

    Raises:
        AccessRefused: the caller may not give it this access.
        Problem: it is too large, or not base64.
    """
    given = form.fields
    access = access_for(caller, given.visibility, given.user_id, given.org_id, given.shared, given.tags)
    most = parts.settings.serve.max_document_bytes
    content = form.file
    if content is None:
        content = await in_thread(_decoded, given.content, given.content_type, given.filename)
    check_size(content, given.filename, most)
    return NewContent(
        content,
        given.filename,
        access,
        name=given.filename,
        content_type=given.content_type,
        metadata=given.metadata,
    )


def check_size(content: bytes, filename: str, most: int) -> None:
    """Refuse a document that is too large.

    Raises:
        Problem: it is.
    """
    if len(content) > most:
        raise Problem(413, "too-large", f"{filename} has {size_of(len(content))}; a document may have {size_of(most)}")


def _decoded(content: str, content_type: str | None, filename: str) -> bytes:
    if is_text(content_type, filename):
        return content.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError):
        named = content_type or f"a file named {filename}"
        raise Problem(422, "invalid-base64", f"the content of {named} is sent in base64, and this is none") from None


def is_text(content_type: str | None, filename: str) -> bool:
    """True if content of a type is sent as text; without a type, the name decides, and an unknown one is text."""
    named = content_type or mimetypes.guess_type(filename, strict=False)[0] or "text/plain"
    media_type = named.partition(";")[0].strip().lower()
    return media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(("+json", "+xml"))


def imported(settings: Settings, url: str, metadata: Mapping[str, Any], access: Access) -> NewContent:
    """Fetch a web page, or the captions of a video.

    Raises:
        DocumentError: it cannot be fetched, or may not be.
        TransientError: it cannot be fetched at the moment.
    """
    found = fetch_url(url, settings)
    return NewContent(
        found.content,
        found.filename,
        access,
        name=found.url,
        content_type=found.content_type,
        metadata={**found.metadata, **metadata, **({"source": "youtube"} if found.kind == "youtube" else {})},
        kind=found.kind,
        url=found.url,
    )
