"""Compressed streams, unpacked piece by piece."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from parquetry.errors import BrokenDocument

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DECOMPRESSION_ERRORS = (zlib.error, lzma.LZMAError, zstd.ZstdError)
"""errors raised for damaged streams, besides OSError, ValueError and EOFError"""
BLOCK = 1 << 18
"""packed bytes read at a time"""
_PIECE = 1 << 20
"""unpacked bytes per piece"""
_LZMA_BYTES = 128 * 1024 * 1024
"""memory of the decompressor in bytes; `xz -9` needs 65 MiB"""
_ZSTD_WINDOW = 27
"""binary logarithm of the decompressor's window in bytes: 128 MiB, the default limit of `zstd`"""


def pieces(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the unpacked content of a compressed stream, at most one piece at a time, whatever its compression ratio.

    Args:
        stream: positioned at its beginning.
        name: lower-case name of the file; its ending selects the format.

    Raises:
        BrokenDocument: `damaged`: the stream ends too early; or one of `DECOMPRESSION_ERRORS`.
    """
    decompressor: Any = None
    while block := stream.read(BLOCK):
        while block or not (decompressor is None or decompressor.needs_input):
            decompressor = decompressor or _decompressor(name)
            yield decompressor.decompress(block, _PIECE)
            block = b""
            if decompressor.eof:
                # Another stream may follow the first, and a tape may be padded with nulls.
                block, decompressor = decompressor.unused_data.lstrip(b"\0"), None
    if decompressor is not None:
        raise BrokenDocument("damaged", "the compressed tar archive ends too early")


def _decompressor(name: str) -> Any:
    if name.endswith(("gz", "tgz")):
        return _Gzip()
    if name.endswith(("bz2", "tbz2")):
        return bz2.BZ2Decompressor()
    if name.endswith("zst"):
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})
    return lzma.LZMADecompressor(memlimit=_LZMA_BYTES)


class _Gzip:
    """gzip decompressor with the attributes of the other decompressors."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self.needs_input = True

    def decompress(self, packed: bytes, most: int) -> bytes:
        unpacked = self._stream.decompress(self._stream.unconsumed_tail + packed, most)
        self.needs_input = len(unpacked) < most
        return unpacked

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data
