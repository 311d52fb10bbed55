"""A `.7z` archive, listed and unpacked by a process of its own, into memory."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, BinaryIO

from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.sources.archive import members as limits
from parquetry.sources.archive.members import Member, collect, link, place_of, readable, refused_name, too_many, unsafe
from parquetry.sources.archive.seven_zip_frames import ARCHIVE, FAULT, LIST, MEMBER, PIECE, UNPACK, WHOLE, frames

SUFFIX = ".7z"

_NEEDED = "archives of 7-Zip need an optional package: pip install 'parquetry[sevenzip]'"
_DETAILS = {
    "encrypted": "the archive is encrypted; unpack it with its password",
    "too-large": "the archive unpacks to more than it says",
    "memory": "the archive needs more memory to be unpacked than one may take",
}


def available() -> bool:
    """Return True if the `sevenzip` extra is installed."""
    return importlib.util.find_spec("py7zr") is not None


class SevenZip:
    """Archive whose members are all unpacked when the first one is read: most share one compressed block.

    Args:
        stream: content of the archive; closed together with it.
        size: size of the stream, in bytes.
        held: bytes of the stream that are in memory.

    Raises:
        SkippedDocument: `unsupported-type`: the `sevenzip` extra is not installed.
        BrokenDocument: it is damaged, encrypted or over a limit.
    """

    def __init__(self, stream: BinaryIO, size: int, held: int) -> None:
        if not available():
            raise SkippedDocument("unsupported-type", _NEEDED)
        self.held = held
        self._stream = stream
        self._numbers: dict[str, int] = {}
        self._contents: dict[int, bytes] | None = None
        self._faults: dict[int, BrokenDocument] = {}
        self.members: Mapping[str, Member] = collect(self._members(), size)
        total = sum(member.size for member in self.members.values() if member.refusal is None)
        if total > limits.MAX_HELD_BYTES:
            raise _too_large()

    def _members(self) -> Iterator[Member]:
        told = 0
        for kind, number, content in frames(self._stream, LIST, limits.MAX_MEMBERS):
            told += len(content)
            if told > limits.MAX_DIRECTORY_BYTES or number == limits.MAX_MEMBERS:
                raise too_many()
            if kind == FAULT:
                raise _fault(content)
            if kind == MEMBER and (file := json.loads(content))["kind"] != "folder":
                member = _member(file)
                self._numbers[member.name] = number
                yield member

    def read(self, name: str) -> bytes:
        """Unpack one member, and with the first one all others."""
        member = readable(self.members, name)
        if self._contents is None:
            self._contents = self._unpacked()
            self.held += sum(map(len, self._contents.values()))
        number = self._numbers[name]
        content = self._contents.get(number)
        if content is None:
            raise self._faults.get(number) or BrokenDocument("damaged", "the member cannot be unpacked")
        if len(content) != member.size:
            raise BrokenDocument("damaged", "the member has another size than the archive says")
        return content

    def _unpacked(self) -> dict[int, bytes]:
        pieces: dict[int, list[bytes]] = {}
        whole: dict[int, bytes] = {}
        total = 0
        try:
            for kind, number, content in frames(self._stream, UNPACK, limits.MAX_HELD_BYTES):
                total += len(content)
                if total > limits.MAX_HELD_BYTES:
                    raise _too_large()
                if kind == PIECE:
                    pieces.setdefault(number, []).append(content)
                elif kind == WHOLE:
                    whole[number] = b"".join(pieces.pop(number, ()))
                elif kind == FAULT:
                    self._fail(number, _fault(content))
        except BrokenDocument as error:
            self._fail(ARCHIVE, error)
        return whole

    def _fail(self, number: int, fault: BrokenDocument) -> None:
        """Record why a member, or every one that is not whole, cannot be read."""
        for each in self._numbers.values() if number == ARCHIVE else (number,):
            self._faults.setdefault(each, fault)

    def close(self) -> None:
        self._contents = None
        self._stream.close()


def _member(file: dict[str, Any]) -> Member:
    raw, size = str(file["name"]), int(file["size"])
    place = place_of(raw.replace("\\", "/"))
    modified_at = _time(file["time"])
    crc = "" if file["crc"] is None else f"{file['crc']:08x}"
    token = f"{crc}-{size:x}" if crc else f"{modified_at}-{size:x}"
    member = Member(place or refused_name(raw), size, token, modified_at)
    return replace(member, refusal=unsafe() if place is None else _refusal(file["kind"], size))


def _refusal(kind: str, size: int) -> DocumentError | None:
    if kind == "link":
        return link()
    if kind == "device":
        return SkippedDocument("not-a-file", "the member is a device or a pipe")
    if kind == "encrypted":
        return BrokenDocument("encrypted", "the member is encrypted; unpack the archive with its password")
    if kind == "method":
        return BrokenDocument("unsupported-compression", "the member is packed by a method that is not read, as BCJ2")
    return BrokenDocument("damaged", "the member has a negative size") if size < 0 else None


def _time(seconds: float | None) -> datetime | None:
    if seconds is None or not math.isfinite(seconds):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _fault(content: bytes) -> BrokenDocument:
    told = json.loads(content)
    reason = told["reason"]
    return BrokenDocument(reason, _DETAILS.get(reason) or f"the archive cannot be unpacked: {told['detail']}")


def _too_large() -> BrokenDocument:
    return BrokenDocument(
        "too-large", f"unpacks to more than {limits.MAX_HELD_BYTES >> 20} MiB; .zip has no such limit"
    )
