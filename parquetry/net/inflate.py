"""Compressed bodies, unpacked piece by piece and within a limit."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from parquetry.errors import BrokenDocument, SkippedDocument, TransientError

_STEP_BYTES = 64 * 1024
GZIP_MAGIC = b"\x1f\x8b"


def inflate(pieces: Iterable[bytes], max_bytes: int, what: str) -> Iterator[bytes]:
    """Unpack gzip with one or more members.

    Args:
        pieces: compressed bytes.
        max_bytes: maximum of all unpacked bytes.
        what: the URL, for messages.

    Raises:
        SkippedDocument: `too-large`.
        BrokenDocument: `damaged`, not gzip.
        TransientError: `truncated`, it ends too early.
    """
    unpacker = zlib.decompressobj(wbits=31)
    size, ended = 0, False
    for piece in pieces:
        rest = piece
        while True:
            if ended:
                if not rest:
                    break
                # Another member may follow; anything else there is padding.
                if not rest.startswith(GZIP_MAGIC[: len(rest)]):
                    return
                unpacker, ended = zlib.decompressobj(wbits=31), False
            try:
                unpacked = unpacker.decompress(rest, _STEP_BYTES)
            except zlib.error as error:
                raise BrokenDocument("damaged", f"{what} says it is gzip, but is not: {error}") from error
            size += len(unpacked)
            if size > max_bytes:
                raise SkippedDocument("too-large", f"{what} has more than {max_bytes} bytes once unpacked (max_bytes)")
            yield unpacked
            ended = unpacker.eof
            rest = unpacker.unused_data if ended else unpacker.unconsumed_tail
            if not rest and len(unpacked) < _STEP_BYTES:
                break
    if not ended:
        raise TransientError("truncated", f"{what} ended in the middle of its compressed content")
