"""Rich text as Outlook compresses it ([MS-OXRTFCP])."""

from __future__ import annotations

import struct

from parquetry.errors import BrokenDocument
from parquetry.extract.allowance import count_unpacked

_HEADER = struct.Struct("<II4sI")
"""bytes that follow the first field, bytes unpacked, kind of compression, checksum"""
_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans "
    rb"SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""words that any rich text may refer to without having them"""
_WINDOW = 4096
"""bytes back to which a reference may point"""


def unpacked_rtf(content: bytes) -> bytes:
    """Return the rich text of an Outlook message.

    Raises:
        BrokenDocument: `damaged`.
    """
    if len(content) < _HEADER.size:
        raise BrokenDocument("damaged", "its compressed rich text ends early")
    _, size, kind, _ = _HEADER.unpack_from(content)
    packed = content[_HEADER.size :]
    if kind == b"MELA":
        return packed[:size]
    if kind != b"LZFu":
        raise BrokenDocument("damaged", "its rich text is compressed in no known way")
    unpacked = _unpacked(packed, size)
    count_unpacked(len(unpacked))
    return unpacked


def _unpacked(packed: bytes, size: int) -> bytes:
    """Unpack at most `size` bytes; a reference gives at most 17 for the two that it takes."""
    before = len(_DICTIONARY)
    text = bytearray(_DICTIONARY)
    at = 0
    while at < len(packed) and len(text) < before + size:
        flags, at = packed[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                text += packed[at : at + 1]
                at += 1
                continue
            reference = int.from_bytes(packed[at : at + 2], "big")
            at += 2
            # Both count round the window; the text so far ends at its write position.
            back = (len(text) - (reference >> 4)) % _WINDOW
            if not back or at > len(packed):
                return bytes(text[before : before + size])
            _repeat(text, back, (reference & 15) + 2)
    return bytes(text[before : before + size])


def _repeat(text: bytearray, back: int, length: int) -> None:
    """Append what stands so far back; it may overlap what is appended."""
    for _ in range(length):
        text.append(text[-back] if back <= len(text) else 0x20)
