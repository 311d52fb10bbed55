"""One archive: its table of contents and the bytes of its members. Nothing is unpacked to disk."""

from __future__ import annotations

import errno
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO, BinaryIO, Protocol, cast

from parquetry.decompress import MAX_RATIO, is_bomb
from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.sources.archive import members as limits
from parquetry.sources.archive.members import (
    MAX_DIRECTORY_BYTES,
    MAX_HELD_BYTES,
    Member,
    collect,
    link,
    place_of,
    readable,
    refused_name,
    too_many,
    unsafe,
)
from parquetry.sources.archive.seven_zip import SUFFIX, SevenZip
from parquetry.unpacking import BLOCK, DECOMPRESSION_ERRORS, pieces

_MAX_HEADER_BYTES = 1024 * 1024
"""Maximum bytes in the extra header of a tar member: long names and attributes."""
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_END_OF_ZIP = b"PK\x05\x06"
_ZIP64_END = b"PK\x06\x06"


class Archive(Protocol):
    """Open archive."""

    held: int
    """bytes held in memory"""

    @property
    def members(self) -> Mapping[str, Member]:
        """Members by name, in the order of the archive."""
        ...

    def read(self, name: str) -> bytes:
        """Unpack one member.

        Raises:
            DocumentError: it is refused, damaged or over a limit.
        """
        ...

    def close(self) -> None: ...


def open_archive(name: str, stream: BinaryIO, size: int, *, in_memory: bool) -> Archive:
    """Open an archive and read its table of contents.

    Args:
        name: file name; its ending selects the format.
        stream: content of the archive; closed together with it.
        size: size of the stream, in bytes.
        in_memory: True if the stream holds its bytes in memory.

    Raises:
        BrokenDocument: it is damaged or over a limit.
    """
    held = size if in_memory else 0
    with ExitStack() as unfinished:
        unfinished.enter_context(stream)
        archive: Archive
        if name.lower().endswith(".zip"):
            archive = _Zip(stream, size, held)
        elif name.lower().endswith(".tar"):
            archive = _Tar(stream, size, held)
        elif name.lower().endswith(SUFFIX):
            archive = SevenZip(stream, size, held)
        else:
            content = _decompressed(stream, size, name.lower())
            # The packed bytes are no longer needed.
            unfinished.close()
            return _Tar(io.BytesIO(content), size, len(content))
        unfinished.pop_all()
        return archive


class _Zip:
    def __init__(self, stream: BinaryIO, size: int, held: int) -> None:
        self.held = held
        self._stream = stream
        with _damage("the file is not a readable zip archive"):
            _check_directory(stream, size)
            self._zip = zipfile.ZipFile(stream)
            found = self._zip.infolist()
        self._infos: dict[str, zipfile.ZipInfo] = {}
        self.members = collect(self._members(found), size)

    def _members(self, found: list[zipfile.ZipInfo]) -> Iterator[Member]:
        for info in found:
            if info.is_dir():
                continue
            # Archives made on Windows may have backslashes between the parts of a name.
            place = place_of(info.orig_filename.replace("\\", "/"))
            token = f"{info.CRC:08x}-{info.file_size:x}"
            member = Member(place or refused_name(info.orig_filename), info.file_size, token, _zip_time(info))
            self._infos[member.name] = info
            yield replace(member, refusal=unsafe() if place is None else _zip_refusal(info))

    def read(self, name: str) -> bytes:
        member = readable(self.members, name)
        with _damage("the member cannot be unpacked"), self._zip.open(self._infos[name]) as unpacked:
            return _whole(unpacked, member.size)

    def close(self) -> None:
        self._zip.close()
        self._stream.close()


class _Tar:
    def __init__(self, stream: BinaryIO, size: int, held: int) -> None:
        self.held = held
        self._stream = stream
        self._limited = _Limited(stream)
        self._infos: dict[str, tarfile.TarInfo] = {}
        with _damage("the file is not a readable tar archive"):
            self._tar = tarfile.open(fileobj=cast(IO[bytes], self._limited), mode="r:")  # noqa: SIM115 - closed with the source
            self.members = collect(self._members(), size)
            stream.seek(self._tar.offset)
            if len(stream.read(tarfile.BLOCKSIZE)) < tarfile.BLOCKSIZE:
                raise BrokenDocument("damaged", "the tar archive ends before its end mark")
        self._limited.limit = None

    def _members(self) -> Iterator[Member]:
        for number, info in enumerate(self._tar):
            if number >= limits.MAX_MEMBERS:
                raise too_many()
            if info.isdir():
                continue
            place = place_of(info.name)
            token = f"{info.mtime}-{info.size}"
            member = Member(place or refused_name(info.name), info.size, token, _tar_time(info))
            self._infos[member.name] = info
            yield replace(member, refusal=unsafe() if place is None else _tar_refusal(info))

    def read(self, name: str) -> bytes:
        member = readable(self.members, name)
        with _damage("the member cannot be read"):
            unpacked = self._tar.extractfile(self._infos[name])
            if unpacked is None:
                raise BrokenDocument("damaged", "the member has no content")
            with unpacked:
                return _whole(unpacked, member.size)

    def close(self) -> None:
        self._tar.close()
        self._stream.close()


class _Limited:
    """Refuses large single reads: tarfile reads a header of any length that the header itself declares."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.limit: int | None = _MAX_HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        if self.limit is not None and not 0 <= size <= self.limit:
            raise BrokenDocument("damaged", f"a header of the tar archive has {size} bytes, more than {self.limit}")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


# --- refusals


def _zip_refusal(info: zipfile.ZipInfo) -> DocumentError | None:
    if info.flag_bits & 1:
        return BrokenDocument("encrypted", "the member is encrypted; unpack the archive with its password")
    if stat.S_ISLNK(info.external_attr >> 16):
        return link()
    if info.compress_type not in _COMPRESSIONS:
        return BrokenDocument("unsupported-compression", f"the member is packed by method {info.compress_type}")
    if is_bomb(info.file_size, info.compress_size):
        return BrokenDocument("too-large", f"the member unpacks to more than {MAX_RATIO} times its packed size")
    return None


def _tar_refusal(info: tarfile.TarInfo) -> DocumentError | None:
    if info.issym() or info.islnk():
        return link()
    return None if info.isreg() else SkippedDocument("not-a-file", "the member is a device or a pipe")


# --- bytes


def _whole(stream: IO[bytes], size: int) -> bytes:
    """Read a stream that must hold exactly `size` bytes."""
    pieces = []
    read = 0
    while block := stream.read(BLOCK):
        read += len(block)
        if read > size:
            raise BrokenDocument("damaged", "the member is longer than the archive says")
        pieces.append(block)
    if read < size:
        raise BrokenDocument("damaged", "the member is shorter than the archive says")
    return b"".join(pieces)


def _decompressed(stream: BinaryIO, size: int, name: str) -> bytes:
    """Unpack a compressed tar whole, because its members may be read in any order."""
    unpacked = bytearray()
    with _damage("the file is not a readable compressed tar archive"):
        for piece in pieces(stream, name):
            unpacked += piece
            if len(unpacked) > MAX_HELD_BYTES:
                raise BrokenDocument(
                    "too-large", f"unpacks to more than {MAX_HELD_BYTES >> 20} MiB; .zip has no such limit"
                )
            if is_bomb(len(unpacked), size):
                raise BrokenDocument("too-large", f"unpacks to more than {MAX_RATIO} times its size")
    return bytes(unpacked)


def _check_directory(stream: BinaryIO, size: int) -> None:
    """Refuse a table of contents that would take much memory, before it is read."""
    tail = min(size, (1 << 16) + 22 + 76)
    stream.seek(size - tail)
    end = stream.read(tail)
    at = end.rfind(_END_OF_ZIP)
    if at < 0 or len(end) < at + 22:
        raise BrokenDocument("damaged", "the file is not a readable zip archive: it has no table of contents")
    (directory,) = struct.unpack_from("<I", end, at + 12)
    if at >= 76 and end[at - 76 : at - 72] == _ZIP64_END:
        (directory,) = struct.unpack_from("<Q", end, at - 76 + 40)
    if directory > MAX_DIRECTORY_BYTES:
        raise BrokenDocument(
            "too-many-members", f"the table of contents has {directory} bytes, more than {MAX_DIRECTORY_BYTES}"
        )


@contextmanager
def _damage(what: str) -> Iterator[None]:
    try:
        yield
    except (DocumentError, FileNotFoundError):
        raise
    except (
        *DECOMPRESSION_ERRORS,
        zipfile.BadZipFile,
        tarfile.TarError,
        struct.error,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        OSError,
    ) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            # The disk failed. A damaged archive raises EINVAL (a seek to before the start) or an error without errno.
            raise
        raise BrokenDocument("damaged", f"{what}: {error}") from error


def _zip_time(info: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None


def _tar_time(info: tarfile.TarInfo) -> datetime | None:
    try:
        return datetime.fromtimestamp(info.mtime, UTC)
    except (OverflowError, ValueError, OSError):
        return None
