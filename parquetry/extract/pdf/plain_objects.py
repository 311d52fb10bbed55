"""Parses dictionaries of a PDF that hold nothing but names, numbers, references, arrays and dictionaries.

pypdf reads byte by byte, because it repairs what it can. Nearly all dictionaries that are measured need no repair: for
them, a pattern per token gives the same objects in a tenth of the time.
"""

from __future__ import annotations

import re
from typing import Any

from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NullObject,
    NumberObject,
)

_TOKEN = re.compile(
    rb"[ \t\r\n\f]*+(?:"
    rb"(/[A-Za-z0-9_.+*:,@-]{1,127})(?=[ \t\r\n\f/<>\[\]])"
    rb"|([0-9]{1,9})[ \r\n]([0-9]{1,5})[ \r\n]R(?=[ \t\r\n\f/<>\[\]])"
    rb"|([+-]?[0-9]{1,15})(?=[ \t\r\n\f/<>\[\]])"
    rb"|([+-]?(?:[0-9]{1,9}\.[0-9]{0,9}|\.[0-9]{1,9}))(?=[ \t\r\n\f/<>\[\]])"
    rb"|(<<|>>|\[|\]|(?:true|false|null)(?=[ \t\r\n\f/<>\[\]])))"
)
_NAME, _REFERENCE, _WHOLE, _DECIMAL, _SIGN = 1, 3, 4, 5, 6
"""numbers of the last group of each kind of token"""
_FOLLOWING = re.compile(rb"[ \t\r\n\f]*+(?:[^s%\s]|\Z)")
"""anything but the content of a stream, or a comment, after a dictionary"""
_MOST_TOKENS = 20_000
_MOST_DEPTH = 50
"""levels of arrays and dictionaries"""


def plain_dictionary(data: bytes, place: int, reader: Any) -> Any | None:
    """Return the dictionary at an index as pypdf would; None if there is none, or if pypdf must look at it.

    Args:
        data: bytes of a file or of an unpacked object stream.
        place: index at which the dictionary may begin, after spaces.
        reader: the `PdfReader` to which its references belong.
    """
    token = _TOKEN.match
    open_values: list[list[Any]] = []
    for _ in range(_MOST_TOKENS):
        found = token(data, place)
        if found is None:
            return None
        place, kind = found.end(), found.lastindex
        value: Any
        if kind == _NAME:
            value = NameObject(found[_NAME].decode("ascii"))
        elif kind == _REFERENCE:
            value = IndirectObject(int(found[2]), int(found[_REFERENCE]), reader)
        elif kind == _WHOLE:
            value = NumberObject(found[_WHOLE])
        elif kind == _DECIMAL:
            value = FloatObject(found[_DECIMAL])
        else:
            sign = found[_SIGN]
            if sign in (b"<<", b"["):
                if len(open_values) == _MOST_DEPTH:
                    return None
                open_values.append([sign])
                continue
            value = _closed(sign, open_values) if sign in (b">>", b"]") else _constant(sign)
            if value is None:
                return None
        if not open_values:
            return value if type(value) is DictionaryObject and _FOLLOWING.match(data, place) else None
        open_values[-1].append(value)
    return None


def _constant(sign: bytes) -> Any:
    return NullObject() if sign == b"null" else BooleanObject(sign == b"true")


def _closed(sign: bytes, open_values: list[list[Any]]) -> Any | None:
    """Return the array or dictionary that a sign closes; None for what pypdf would repair."""
    if not open_values:
        return None
    opening, *values = open_values.pop()
    if sign == b"]":
        return ArrayObject(values) if opening == b"[" else None
    keys = values[::2]
    if opening != b"<<" or len(values) % 2 or not all(type(key) is NameObject for key in keys):
        return None
    dictionary = DictionaryObject()
    dictionary.update(dict(zip(keys, values[1::2], strict=True)))
    return dictionary if len(dictionary) == len(keys) else None
