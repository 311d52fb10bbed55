"""Compressed streams, unpacked piece by piece, whatever their compression ratio."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from parquetry.errors import BrokenDocument, SkippedDocument, TransientError

GZIP_MAGIC = b"\x1f\x8b"
MAX_RATIO = 300
"""unpacked bytes per packed byte. Logs and tables of repeated values reach 100; a bomb of zeros reaches 1,032."""
RATIO_FREE_BYTES = 32 * 1024 * 1024
"""unpacked bytes below which a high ratio is harmless"""
_PIECE = 1 << 18
"""maximum bytes of an unpacked piece"""


def is_bomb(unpacked: int, packed: int) -> bool:
    """Return True if this many bytes unpack to more than those of genuine content do."""
    return unpacked > RATIO_FREE_BYTES and unpacked > max(1, packed) * MAX_RATIO


class Decompressor(Protocol):
    """Decompressor of one stream, with the attributes of those in the standard library."""

    @property
    def needs_input(self) -> bool: ...
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Gzip:
    """Decompressor of one member of gzip, which the standard library has in another form."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self.needs_input = True

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return at most that many unpacked bytes."""
        unpacked = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self.needs_input = len(unpacked) < max_length
        return unpacked

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data


def decompress(packed: Iterable[bytes], new: Callable[[], Decompressor], magic: bytes = b"") -> Iterator[bytes]:
    """Unpack streams that follow each other; nulls after one are padding.

    Args:
        packed: compressed bytes.
        new: opens the decompressor of the next stream.
        magic: first bytes of a stream; with it, content after a stream that is no other stream is left alone.

    Raises:
        EOFError: the last stream ends too early, or there is none. Damage raises the error of the decompressor.
    """
    stream: Decompressor | None = None
    ended = False
    for piece in packed:
        block = piece
        while block or not (stream is None or stream.needs_input):
            if stream is None:
                block = block.lstrip(b"\0") if ended else block
                if ended and not block.startswith(magic[: len(block)]):
                    return
                if not block:
                    break
                stream, ended = new(), False
            yield stream.decompress(block, _PIECE)
            block = b""
            if stream.eof:
                block, stream, ended = stream.unused_data, None, True
    if not ended:
        raise EOFError("the compressed content ends too early")


def inflate(packed: Iterable[bytes], max_bytes: int, what: str) -> Iterator[bytes]:
    """Unpack gzip with one or more members.

    Args:
        packed: compressed bytes.
        max_bytes: maximum of all unpacked bytes.
        what: the URL, for messages.

    Raises:
        SkippedDocument: `too-large`.
        BrokenDocument: `damaged`, not gzip.
        TransientError: `truncated`, it ends too early.
    """
    size = 0
    try:
        for unpacked in decompress(packed, Gzip, GZIP_MAGIC):
            size += len(unpacked)
            if size > max_bytes:
                raise SkippedDocument("too-large", f"{what} has more than {max_bytes} bytes once unpacked (max_bytes)")
            yield unpacked
    except zlib.error as error:
        raise BrokenDocument("damaged", f"{what} says it is gzip, but is not: {error}") from error
    except EOFError as error:
        raise TransientError("truncated", f"{what} ended in the middle of its compressed content") from error
