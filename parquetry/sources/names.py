r"""File names as valid Unicode: Linux allows any bytes, but tables and programs hold text."""

from __future__ import annotations

import os
import re

from parquetry.sources.paths import SUFFIXES

_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_UNDECODABLE = re.compile("[\udc80-\udcff]")
"""Python's representation of the bytes of a file name that are not UTF-8"""
_SUFFIXES = "|".join(map(re.escape, SUFFIXES))
_MARK = re.compile(rf"({_SUFFIXES})!(?=/|$)", re.IGNORECASE)
"""ending of a folder name that would look like the inside of an archive"""
_ESCAPED_MARK = re.compile(rf"({_SUFFIXES})\\x21(?=/|$)", re.IGNORECASE)


def printable(name: str) -> str:
    r"""Return a file name or path as valid Unicode from which `native` restores the original.

    Bytes that are not UTF-8 become `\xNN`, and so does the backslash of a name that already contains such a sequence.
    The mark at the end of `box.zip!` becomes `\x21`: a file in such a folder is not a member of an archive `box.zip`
    beside it. All other names stay unchanged.
    """
    if "\\" not in name and "!" not in name and name.isprintable():
        return name
    name = _ESCAPE.sub(lambda found: "\\x5c" + found[0][1:], name)
    name = _UNDECODABLE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", name)
    return _MARK.sub(r"\1\\x21", name)


def native(path: str) -> str:
    """Restore the operating system's name or path from the result of `printable`."""
    if "\\" not in path:
        return path
    return _ESCAPE.sub(lambda found: os.fsdecode(bytes([int(found[1], 16)])), path)


def typed(path: str) -> str:
    """Return a path as a person would type it, with the `!` of a folder `box.zip!` restored."""
    return _ESCAPED_MARK.sub(r"\1!", path) if "\\x21" in path else path
