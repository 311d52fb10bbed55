"""Compressed files of every format that is read, unpacked piece by piece."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from parquetry.decompress import Decompressor, Gzip, decompress
from parquetry.errors import BrokenDocument

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DECOMPRESSION_ERRORS = (zlib.error, lzma.LZMAError, zstd.ZstdError)
"""errors raised for damaged streams, besides OSError, ValueError and EOFError"""
BLOCK = 1 << 18
"""packed bytes read at a time"""
_LZMA_BYTES = 128 * 1024 * 1024
"""memory of the decompressor in bytes; `xz -9` needs 65 MiB"""
_ZSTD_WINDOW = 27
"""binary logarithm of the decompressor's window in bytes: 128 MiB, the default limit of `zstd`"""


def pieces(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the unpacked content of a compressed file.

    Args:
        stream: positioned at its beginning.
        name: lower-case name of the file; its ending selects the format.

    Raises:
        BrokenDocument: `damaged`: the stream ends too early; or one of `DECOMPRESSION_ERRORS`.
    """
    try:
        yield from decompress(iter(partial(stream.read, BLOCK), b""), partial(_decompressor, name))
    except EOFError as error:
        raise BrokenDocument("damaged", "the compressed content ends too early") from error


def _decompressor(name: str) -> Decompressor:
    if name.endswith(("gz", "tgz")):
        return Gzip()
    if name.endswith(("bz2", "tbz2")):
        return bz2.BZ2Decompressor()
    if name.endswith("zst"):
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})
    return lzma.LZMADecompressor(memlimit=_LZMA_BYTES)
