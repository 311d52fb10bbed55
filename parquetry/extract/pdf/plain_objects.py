"""Parses dictionaries of a PDF that hold nothing but names, numbers, references, arrays and dictionaries, and streams.

pypdf reads byte by byte, because it repairs what it can. Nearly all dictionaries that are measured need no repair: for
them, a pattern per token gives the same objects in a tenth of the time. Names and numbers, which never change, are made
once for all places at which they occur.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
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
    StreamObject,
)

_TOKEN = re.compile(
    rb"[ \t\r\n\f]*+(?:"
    rb"(/[A-Za-z0-9_.+*:,@-]{1,127})(?=[ \t\r\n\f/<>\[\]])"
    rb"|([0-9]{1,9})[ \r\n]([0-9]{1,5})[ \r\n]R(?=[ \t\r\n\f/<>\[\]])"
    rb"|([+-]?[0-9]{1,15})(?=[ \t\r\n\f/<>\[\]])"
    rb"|([+-]?(?:[0-9]{1,9}\.[0-9]{0,9}|\.[0-9]{1,9}))(?=[ \t\r\n\f/<>\[\]])"
    rb"|\[([0-9 \t\r\n\f]*+)\]"
    rb"|(<<|>>|\[|\]|(?:true|false|null)(?=[ \t\r\n\f/<>\[\]])))"
)
_NAME, _REFERENCE, _WHOLE, _DECIMAL, _WHOLES, _SIGN = 1, 3, 4, 5, 6, 7
"""numbers of the last group of each kind of token"""
_STREAM = re.compile(rb"[ \t\r\n\f]*+stream\r?\n")
_END_OF_STREAM = re.compile(rb"[ \t\r\n\f]*+endstream")
_LONGEST_STREAM = 50_000_000
"""bytes of a stream; longer ones are left to pypdf, which has a limit"""
_FOLLOWING = re.compile(rb"[ \t\r\n\f]*+(?:[^s%\s\0]|\Z)")
"""anything but the content of a stream, or a comment, after a dictionary"""
_LONGEST_NUMBER = 15
"""digits"""
_MOST_TOKENS = 20_000
_MOST_DEPTH = 50
"""levels of arrays and dictionaries"""


@lru_cache(maxsize=4096)
def _name(written: bytes) -> NameObject:
    return NameObject(written.decode("ascii"))


@lru_cache(maxsize=4096)
def _whole(written: bytes) -> NumberObject:
    return NumberObject(written)


@lru_cache(maxsize=4096)
def _decimal(written: bytes) -> FloatObject:
    return FloatObject(written)


def _wholes(written: bytes) -> ArrayObject | None:
    """Return an array of whole numbers; nearly all numbers are the widths of characters."""
    numbers = written.split()
    if len(numbers) > _MOST_TOKENS or max(map(len, numbers), default=0) > _LONGEST_NUMBER:
        return None
    return ArrayObject(map(_whole, numbers))


_MADE: dict[int, Callable[[bytes], Any]] = {
    _NAME: _name,
    _WHOLE: _whole,
    _DECIMAL: _decimal,
    _WHOLES: _wholes,
}
"""kind of a token -> what makes the object; None for what pypdf must look at"""


def plain_dictionary(data: bytes, place: int, reader: Any) -> Any | None:
    """Return the dictionary at an index as pypdf would; None if there is none, or if pypdf must look at it.

    Args:
        data: bytes of a file or of an unpacked object stream.
        place: index at which the dictionary may begin, after spaces.
        reader: the `PdfReader` to which its references belong.
    """
    found = _dictionary(data, place, reader)
    return found[0] if found is not None and _FOLLOWING.match(data, found[1]) else None


def plain_object(data: bytes, place: int, reader: Any) -> Any | None:
    """Return the dictionary or stream at an index as pypdf would; None if there is none, or if pypdf must look at it.

    Args:
        data: bytes of a file that is not encrypted.
        place: index at which the dictionary may begin, after spaces.
        reader: the `PdfReader` to which its references belong.
    """
    found = _dictionary(data, place, reader)
    if found is None:
        return None
    dictionary, end = found
    start = _STREAM.match(data, end)
    if start is None:
        return dictionary if _FOLLOWING.match(data, end) else None
    length = dictionary.raw_get("/Length") if "/Length" in dictionary else None
    if type(length) is not NumberObject or not 0 <= length <= _LONGEST_STREAM:
        return None
    stop = start.end() + length
    if not _END_OF_STREAM.match(data, stop):
        return None
    return StreamObject.initialize_from_dictionary({**dictionary, "__streamdata__": data[start.end() : stop]})


def _dictionary(data: bytes, place: int, reader: Any) -> tuple[Any, int] | None:
    """Return the dictionary at an index and the index after it."""
    token = _TOKEN.match
    open_values: list[list[Any]] = []
    for _ in range(_MOST_TOKENS):
        found = token(data, place)
        if found is None:
            return None
        place, kind = found.end(), found.lastindex or 0
        value: Any
        if kind in _MADE:
            value = _MADE[kind](found[kind])
            if value is None:
                return None
        elif kind == _REFERENCE:
            value = IndirectObject(int(found[2]), int(found[_REFERENCE]), reader)
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
            return (value, place) if type(value) is DictionaryObject else None
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
