"""Frames in which the process that reads a `.7z` archive reports what it finds."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import UnsupportedOperation
from typing import IO, BinaryIO, cast

from parquetry.errors import BrokenDocument

FRAME = struct.Struct(">cII")
"""type, number of the member within the archive, length of the content in bytes"""
MEMBER = b"m"
"""JSON: name, size, crc, time (seconds since 1970), kind"""
PIECE = b"p"
"""unpacked bytes of a member"""
WHOLE = b"w"
"""the member is unpacked, and its checksum is right"""
FAULT = b"f"
"""JSON: reason and detail, of the member, or of the archive (`ARCHIVE`)"""
END = b"e"
"""nothing follows"""
ARCHIVE = 0xFFFFFFFF
"""number of the archive itself"""

LIST = "list"
UNPACK = "unpack"
"""tasks of the process"""

MAX_SECONDS = 300.0
"""seconds that the process may take"""
MAX_FRAME = 1 << 26
"""maximum bytes of a frame; py7zr unpacks pieces of a few MiB"""

_MODULE = "parquetry.sources.archive.seven_zip_process"
_KEPT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""environment variables that the process gets, none of them secret"""
_BLOCK = 1 << 20


def frames(stream: BinaryIO, task: str, most: int) -> Iterator[tuple[bytes, int, bytes]]:
    """Start the process and yield its frames, as type, number and content; it ends when the iteration does.

    Args:
        stream: content of the archive; read from its beginning.
        task: `LIST` or `UNPACK`.
        most: maximum number of members to list, or of bytes to unpack.

    Raises:
        BrokenDocument: `damaged`, `timeout` or `memory`: the process ended before its last frame.
    """
    descriptor = _descriptor(stream)
    process = subprocess.Popen(
        # Modules of the working folder are none of ours.
        [sys.executable, "-P", "-m", _MODULE, task, str(most)],
        stdin=subprocess.PIPE if descriptor is None else descriptor,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name in _KEPT},
        # An interrupt at the terminal is for the run.
        start_new_session=os.name == "posix",
    )
    out = cast(IO[bytes], process.stdout)
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(MAX_SECONDS, end)
    timer.daemon = True
    timer.start()
    feeder = threading.Thread(target=_feed, args=(process.stdin, stream), daemon=True)
    feeder.start()
    try:
        while (frame := _next(out)) is not None:
            if frame[0] == END:
                return
            yield frame
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        out.close()
        feeder.join()
    if late.is_set():
        raise BrokenDocument("timeout", f"took more than {MAX_SECONDS:.0f} seconds to be unpacked")
    raise BrokenDocument("memory", "needs more memory or processor time to be unpacked than an archive may take")


def _next(out: IO[bytes]) -> tuple[bytes, int, bytes] | None:
    head = out.read(FRAME.size)
    if len(head) < FRAME.size:
        return None
    kind, number, size = FRAME.unpack(head)
    if size > MAX_FRAME:
        raise BrokenDocument("too-large", f"is unpacked in pieces of more than {MAX_FRAME >> 20} MiB")
    content = out.read(size)
    return (kind, number, content) if len(content) == size else None


def _descriptor(stream: BinaryIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, UnsupportedOperation):
        return None


def _feed(process: IO[bytes] | None, stream: BinaryIO) -> None:
    if process is None:
        return
    try:
        stream.seek(0)
        while block := stream.read(_BLOCK):
            process.write(block)
        process.close()
    except (OSError, ValueError):
        # The process ended: its last frame, or that there is none, says why.
        return
