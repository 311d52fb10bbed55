"""Writes documents of Word and presentations of PowerPoint in their binary formats."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.files.compound_writer import write_compound

_TEXT_AT = 1024
"""offset of the text in its stream"""
ENCRYPTED = 0x0100
"""flag of an encrypted document. [MS-DOC] 2.5.2"""


def write_doc(text: str, *, flags: int = 0) -> bytes:
    r"""Return a document in one piece: `\r` ends a paragraph, `\x07` a cell of a table and a row."""
    clx = b"\2" + struct.pack("<I", 16) + struct.pack("<IIHIH", 0, len(text), 0, _TEXT_AT, 0)
    base = struct.pack("<HHHHHHHIBBHHII", 0xA5EC, 0xC1, 0, 0x409, 0, 0x0200 | flags, 0xBF, 0, 0, 0, 0, 0, 0, 0)
    longs = [0] * 22
    longs[3] = len(text)
    places = [0] * 186
    places[66:68] = [0, len(clx)]
    head = base + struct.pack("<H28x", 14) + struct.pack("<H22I", 22, *longs) + struct.pack("<H186I", 93, *places)
    stream = head.ljust(_TEXT_AT, b"\0") + text.encode("utf-16-le")
    return write_compound({"WordDocument": stream.ljust(4096, b"\0"), "1Table": clx.ljust(4096, b"\0")})


def write_ppt(slides: Sequence[Sequence[str]]) -> bytes:
    """Return a presentation: the texts of each slide, its title first."""
    listed = b""
    for number, texts in enumerate(slides):
        listed += _record(1011, struct.pack("<IIIII", number + 2, 0, len(texts), 256 + number, 0))
        for place, text in enumerate(texts):
            listed += _record(3999, struct.pack("<I", 0 if place == 0 else 1))
            listed += _record(4000, text.encode("utf-16-le"))
    document = _record(1000, _record(4080, listed, 0x0F), 0x0F)
    parts = [document, *[_record(1006, b"", 0x0F) for _ in slides]]
    offsets = [sum(map(len, parts[:number])) for number in range(len(parts))]
    whole = b"".join(parts)
    table = len(whole)
    whole += _record(6002, struct.pack(f"<I{len(offsets)}I", len(offsets) << 20 | 1, *offsets))
    edit = len(whole)
    whole += _record(4085, struct.pack("<IHBBIIIIHH", 0, 0, 0, 3, 0, table, 1, len(offsets), 0, 0))
    user = _record(4086, struct.pack("<IIIHHBBH", 20, 0xE391C05F, edit, 0, 0x03F4, 3, 0, 0))
    return write_compound({"PowerPoint Document": whole.ljust(4096, b"\0"), "Current User": user})


def _record(kind: int, content: bytes, version: int = 0) -> bytes:
    return struct.pack("<HHI", version, kind, len(content)) + content
