"""The process that reads one `.7z` archive with py7zr, under limits of memory and processor time.

The archive is its standard input, frames are its standard output. py7zr takes memory as the archive declares it, for
dictionaries and lists, before anything of it can be counted.
"""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import py7zr
from py7zr.compressor import SupportedMethods
from py7zr.exceptions import DecompressionBombError, PasswordRequired
from py7zr.io import Py7zIO, WriterFactory

from parquetry.sources.archive.seven_zip_frames import (
    ARCHIVE,
    END,
    FAULT,
    FRAME,
    LIST,
    MEMBER,
    PIECE,
    UNPACK,
    WHOLE,
)

MAX_MEMORY = 1 << 30
"""bytes of address space, besides the packed bytes"""
MAX_PROCESSOR_SECONDS = 120
_METHODS = frozenset(method["id"] for method in SupportedMethods.methods)
_MAX_CODERS = 4
"""methods in a row that py7zr undoes"""
_TRIES = 4
"""times that unpacking goes on after a damaged block"""
_LONGEST_DETAIL = 300
"""characters"""


class _Sink(Py7zIO):
    """Sends on what py7zr unpacks of one member."""

    def __init__(self, number: int, done: set[int]) -> None:
        self._number = number
        self._done = done
        self._size = 0

    def write(self, s: bytes | bytearray) -> int:
        _send(PIECE, self._number, s)
        self._size += len(s)
        return len(s)

    def close(self) -> None:
        """Report the member as whole; py7zr calls this once its checksum was compared."""
        self._done.add(self._number)
        _send(WHOLE, self._number)

    def read(self, size: int | None = None) -> bytes:  # noqa: ARG002 - py7zr's interface
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:  # noqa: ARG002 - py7zr's interface
        return offset

    def flush(self) -> None:
        return

    def size(self) -> int:
        return self._size


class _Sinks(WriterFactory):
    def __init__(self) -> None:
        self.done: set[int] = set()
        self.begun = ARCHIVE
        """number of the member that is being unpacked"""

    def create(self, filename: str) -> Py7zIO:
        self.begun = int(filename)
        return _Sink(self.begun, self.done)


def main(task: str, most: int) -> None:
    """Carry out one task.

    Args:
        task: `LIST` or `UNPACK`.
        most: maximum number of members to list, or of bytes to unpack.
    """
    packed = _input()
    _limit(MAX_MEMORY)
    try:
        with py7zr.SevenZipFile(packed, max_extract_size=most if task == UNPACK else None) as archive:
            if task == LIST:
                _list(archive, most)
            else:
                _unpack(archive)
    except Exception as error:  # noqa: BLE001 - py7zr raises whatever a damaged archive leads to
        _fault(ARCHIVE, error)
    _send(END, ARCHIVE)


def _list(archive: py7zr.SevenZipFile, most: int) -> None:
    for number, file in enumerate(_files(archive)):
        if number > most:
            return
        told = {
            "name": file.filename,
            "size": file.uncompressed,
            "crc": file.crc32,
            "time": None if file.lastwritetime is None else file.lastwritetime.totimestamp(),
            "kind": _kind(file),
        }
        _send(MEMBER, number, json.dumps(told).encode())


def _files(archive: py7zr.SevenZipFile) -> Iterator[Any]:
    # An archive without entries has no list of them.
    yield from getattr(archive, "files", ())


def _kind(file: Any) -> str:
    if file.is_directory:
        return "folder"
    if file.is_symlink or file.is_junction:
        return "link"
    mode = file.st_fmt
    if mode and not stat.S_ISREG(mode):
        return "device"
    coders = file.folder.coders if file.folder is not None else ()
    if SupportedMethods.needs_password(coders):
        return "encrypted"
    return "file" if len(coders) <= _MAX_CODERS and _METHODS.issuperset(each["method"] for each in coders) else "method"


def _unpack(archive: py7zr.SevenZipFile) -> None:
    """Unpack all files; those of a block that is damaged are missing from the damage on."""
    blocks: dict[str, int] = {}
    for number, file in enumerate(_files(archive)):
        kind = _kind(file)
        # py7zr takes names for paths of the disk; numbers are none.
        file.file_properties()["filename"] = str(number)
        if kind == "file":
            blocks[str(number)] = id(file.folder)
    sinks = _Sinks()
    wanted = blocks
    for _ in range(_TRIES):
        if not wanted:
            return
        sinks.begun = ARCHIVE
        try:
            archive.extract(targets=set(wanted), factory=sinks)
        except Exception as error:
            begun = sinks.begun
            if begun == ARCHIVE or begun in sinks.done:
                raise
            for each, block in wanted.items():
                if block == blocks[str(begun)] and int(each) not in sinks.done:
                    _fault(int(each), error)
            broken = blocks[str(begun)]
            wanted = {each: block for each, block in wanted.items() if block != broken and int(each) not in sinks.done}
            archive.reset()
        else:
            return


def _fault(number: int, error: Exception) -> None:
    reason = "damaged"
    if isinstance(error, PasswordRequired):
        reason = "encrypted"
    elif isinstance(error, DecompressionBombError):
        reason = "too-large"
    elif isinstance(error, MemoryError):
        reason = "memory"
    detail = str(error).strip() or type(error).__name__
    _send(FAULT, number, json.dumps({"reason": reason, "detail": detail[:_LONGEST_DETAIL]}).encode())


def _send(kind: bytes, number: int, content: bytes | bytearray = b"") -> None:
    out = sys.stdout.buffer
    out.write(FRAME.pack(kind, number, len(content)))
    out.write(content)
    if kind == END:
        out.flush()


def _input() -> BinaryIO:
    given = sys.stdin.buffer
    if given.seekable():
        given.seek(0)
        return given
    return io.BytesIO(given.read())


def _limit(memory: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    # What is there already, the packed bytes among it, does not count.
    held = int(_pages()) * os.sysconf("SC_PAGE_SIZE")
    for what, limit in ((resource.RLIMIT_AS, held + memory), (resource.RLIMIT_CPU, MAX_PROCESSOR_SECONDS)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _pages() -> str:
    """Return the address space of this process in pages; "0" where the system does not tell."""
    try:
        return Path("/proc/self/statm").read_text("ascii").split()[0]
    except OSError:
        return "0"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
