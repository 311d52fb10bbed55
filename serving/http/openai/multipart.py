"""Forms with one file, `multipart/form-data`, whose file is written to disk as it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from parquetry.plural import size_of
from parquetry.serving.files.content import Incoming
from parquetry.serving.http.callers import check_again
from parquetry.serving.http.problems import Problem
from parquetry.serving.service.awaiting import in_thread

_MULTIPART = b"multipart/form-data"
_BLOCK = 1 << 20
"""bytes that are written to disk at a time"""
_MOST_FIELDS = 20
_LONGEST_FIELD = 64 * 1024
"""bytes of all fields but the file"""


BINARY = {"type": "string", "format": "binary"}
"""schema of a file in a form"""


@dataclass
class FileForm:
    """A form, with its file on disk."""

    file: Incoming
    fields: dict[str, str] = field(default_factory=dict)
    filename: str | None = None
    """None until the file begins"""
    content_type: str | None = None


def form_described(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the description of a form in OpenAPI.

    Args:
        properties: field -> its schema.
        required: fields that are; None for all.
    """
    schema = {
        "type": "object",
        "required": list(properties if required is None else required),
        "additionalProperties": False,
        "properties": dict(properties),
    }
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@asynccontextmanager
async def file_form(request: Request, name: str, begin: Callable[[], Incoming], most: int) -> AsyncIterator[FileForm]:
    """Read a form for the block; its file is complete, and deleted at the end unless the block finishes it.

    Args:
        request: the request.
        name: field with the file.
        begin: begins the file.
        most: maximum bytes of the file.

    Raises:
        NotAuthenticated: the token was revoked meanwhile.
        Problem: the body is no such form, or too large.
        StorageError: the file cannot be written.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != _MULTIPART or not options.get(b"boundary"):
        raise Problem(400, "invalid-request", f"send multipart/form-data with the file in a field named {name!r}")
    form = FileForm(await in_thread(begin))
    try:
        reader = _Reader(form, name, options[b"boundary"], most)
        async for block in request.stream():
            reader.feed(block)
            if len(reader.pending) >= _BLOCK:
                await in_thread(reader.write)
        reader.finish()
        check_again(request)
        await in_thread(reader.write)
        yield form
    finally:
        await in_thread(form.file.discard)


class _Reader:
    """Takes a form apart."""

    def __init__(self, form: FileForm, name: str, boundary: bytes, most: int) -> None:
        self._form, self._name, self._most = form, name, most
        self.pending = bytearray()
        """bytes of the file that are not written yet"""
        self._size = 0
        self._headers: dict[bytes, bytes] = {}
        self._header = (bytearray(), bytearray())
        self._field: str | None = None
        """name of the present part; None for the file"""
        self._values: dict[str, bytearray] = {}
        self._ended = False
        callbacks: Any = {
            "on_part_begin": self._headers.clear,
            "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_part,
            "on_part_data": self._data,
            "on_end": self._end,
        }
        self._parser = MultipartParser(boundary, callbacks)

    def feed(self, block: bytes) -> None:
        """Take the next bytes of the body."""
        try:
            self._parser.write(block)
        except FormParserError as error:
            raise _unreadable() from error

    def write(self) -> None:
        """Write what arrived of the file."""
        self._form.file.write(bytes(self.pending))
        self.pending.clear()

    def finish(self) -> None:
        """End the form.

        Raises:
            Problem: it is cut off, or has no file.
        """
        try:
            self._parser.finalize()
        except FormParserError as error:
            raise _unreadable() from error
        if not self._ended:
            raise _unreadable()
        if self._form.filename is None:
            problem = f"the form has no file in a field named {self._name!r}"
            raise Problem(400, "invalid-request", problem, param=self._name)
        try:
            self._form.fields |= {name: bytes(value).decode() for name, value in self._values.items()}
        except UnicodeDecodeError as error:
            raise _unreadable() from error

    def _end_header(self) -> None:
        name, value = self._header
        self._headers[bytes(name).lower()] = bytes(value)
        self._header = (bytearray(), bytearray())

    def _begin_part(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if name == self._name:
            if self._form.filename is not None:
                raise Problem(400, "invalid-request", "the form has more than one file", param=self._name)
            self._field = None
            self._form.filename = _filename(options)
            declared = self._headers.get(b"content-type", b"").decode("latin-1").strip()
            self._form.content_type = declared or None
            return
        if len(self._values) >= _MOST_FIELDS:
            raise Problem(400, "invalid-request", f"the form has more than {_MOST_FIELDS} fields")
        self._field = name
        self._values[name] = bytearray()

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._size += end - start
            if self._size > self._most:
                raise Problem(413, "too-large", f"a file has at most {size_of(self._most)}", param=self._name)
            self.pending += data[start:end]
            return
        self._values[self._field] += data[start:end]
        if sum(map(len, self._values.values())) > _LONGEST_FIELD:
            raise Problem(400, "invalid-request", f"{self._field[:80]}: too long", param=self._field[:80])

    def _end(self) -> None:
        self._ended = True


def _filename(options: Mapping[bytes, bytes]) -> str:
    """Return the last part of the name of a file; some clients send the whole path."""
    named = options.get(b"filename", b"").decode("utf-8", "replace")
    return named.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _unreadable() -> Problem:
    return Problem(400, "invalid-request", "the form cannot be read: it is cut off, or not multipart/form-data")
