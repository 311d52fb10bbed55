r"""File names as valid Unicode: Linux keeps any bytes, but tables and programs hold text."""

from __future__ import annotations

import os
import re

from parquetry.sources.paths import SUFFIXES

_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_UNDECODABLE = re.compile("[\udc80-\udcff]")
"""how Python holds the bytes of a file name that are not UTF-8"""
_SUFFIXES = "|".join(map(re.escape, SUFFIXES))
_MARK = re.compile(rf"({_SUFFIXES})!(?=/|$)", re.IGNORECASE)
"""how the name of a folder ends that would be taken for the inside of an archive"""
_ESCAPED_MARK = re.compile(rf"({_SUFFIXES})\\x21(?=/|$)", re.IGNORECASE)


def printable(name: str) -> str:
    r"""The name of a file, or a path, as valid Unicode from which `native` finds the file again.

    Bytes that are not UTF-8 become `\xNN`, and so does the backslash of a name that happens to look like that. The
    mark at the end of `box.zip!` becomes `\x21`: what stands in such a folder is no member of an archive `box.zip`
    beside it. All other names stay as they are.
    """
    if "\\" not in name and "!" not in name and name.isprintable():
        return name
    name = _ESCAPE.sub(lambda found: "\\x5c" + found[0][1:], name)
    name = _UNDECODABLE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", name)
    return _MARK.sub(r"\1\\x21", name)


def native(path: str) -> str:
    """The name or path that `printable` was given, as the operating system knows it."""
    if "\\" not in path:
        return path
    return _ESCAPE.sub(lambda found: os.fsdecode(bytes([int(found[1], 16)])), path)


def typed(path: str) -> str:
    """A path as a person writes it who sees the folder, with its `box.zip!` as it is."""
    return _ESCAPED_MARK.sub(r"\1!", path) if "\\x21" in path else path
