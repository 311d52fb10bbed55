"""How much the pages of a PDF draw: what they name counts each time, before an engine that bounds nothing draws it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

FREE_BYTES = 8_000_000
"""of content that the pages of any document may draw; an engine takes up to a second for a million, and 100 MB"""
MOST_DRAWN = 32
"""bytes of content for each byte of the file"""
MAX_DEPTH = 100
"""forms within each other"""
_TOO_DEEP = 1 << 60
_PIXELS = 1000
"""of a picture that cost as much as a byte of content"""
_MOST_NODES = 100_000
"""of the tree of pages that are passed without one; a tree may be a circle"""

_DRAWN = re.compile(rb"/([^\s/<>\[\](){}%]++)\s++Do(?![^\s/<>\[\](){}%])")
_LONG_MEANING = re.compile(rb"<([0-9A-Fa-f\s]{128,})>")
_ESCAPED = re.compile(rb"#([0-9A-Fa-f]{2})")


class Weights:
    """What is left of the content that the pages of a document may draw.

    Args:
        reader: the document as pypdf opens it; None if it cannot, which bounds nothing.
        errors: what pypdf raises on damaged input.
        size: bytes of the file.
    """

    def __init__(self, reader: Any, errors: tuple[type[Exception], ...], size: int) -> None:
        self._errors = errors
        self._pages = _pages(reader) if reader is not None else iter(())
        self._known: dict[int, int] = {}
        self._meant: dict[int, int] = {}
        self._left = FREE_BYTES + MOST_DRAWN * size

    def allows_next(self) -> bool:
        """Whether the next page, in their order, may be drawn; if so, what it draws is taken off."""
        weight = 0
        with suppress(*self._errors):
            page, resources = next(self._pages, ({}, {}))
            weight = sum(self._drawn(content, resources, 0) for content in _shown(page))
        if weight > self._left:
            return False
        self._left -= weight
        return True

    def _drawn(self, named: Any, resources: Any, depth: int) -> int:
        """Bytes of content that an object draws, with pictures and forms within it each time that they are named."""
        if depth > MAX_DEPTH:
            return _TOO_DEEP
        key = getattr(named, "idnum", None)
        if key is None:
            return 0
        if key not in self._known:
            # A form within itself has no end.
            self._known[key] = _TOO_DEEP
            weight = 0
            with suppress(*self._errors):
                weight = self._weight(named.get_object(), resources, depth)
            self._known[key] = weight
        return self._known[key]

    def _weight(self, stream: Any, resources: Any, depth: int) -> int:
        if stream.get("/Subtype") == "/Image":
            return int(stream.get("/Width", 0)) * int(stream.get("/Height", 0)) // _PIXELS
        data = _unpacked(stream)
        if data is None:
            return _TOO_DEEP
        resources = _value(stream, "/Resources") or resources
        weight = len(data) * self._said(_value(resources, "/Font"))
        objects = _value(resources, "/XObject") if b"Do" in data else {}
        for name, count in Counter(_DRAWN.findall(data)).items():
            plain = _ESCAPED.sub(lambda escape: bytes([int(escape[1], 16)]), name)
            weight += count * self._drawn(_entry(objects, f"/{plain.decode('latin-1')}"), resources, depth + 1)
        return weight

    def _said(self, fonts: Any) -> int:
        """Characters that one may mean in some fonts; 1 for what scripts and ligatures need."""
        most = 1
        for font in fonts.values():
            told = _entry(font.get_object(), "/ToUnicode")
            key = getattr(told, "idnum", None)
            if key is None:
                continue
            if key not in self._meant:
                data = _unpacked(told.get_object()) or b""
                self._meant[key] = max(map(len, _LONG_MEANING.findall(data)), default=4) // 4
            most = max(most, self._meant[key])
        return most


def _pages(reader: Any) -> Iterator[tuple[Any, Any]]:
    """Pages in their order, each with the resources that it has or inherits."""
    left: list[tuple[Any, Any]] = [(reader.trailer["/Root"]["/Pages"], {})]
    passed = 0
    while left and passed < _MOST_NODES:
        node, resources = left.pop()
        node = node.get_object()
        resources = _value(node, "/Resources") or resources
        if "/Kids" in node:
            passed += 1
            left += [(kid, resources) for kid in reversed(_value(node, "/Kids"))]
        else:
            passed = 0
            yield node, resources


def _shown(page: Any) -> Iterator[Any]:
    """References to what a page shows: its content, and how its annotations look."""
    listed = _value(page, "/Contents")
    yield from listed if isinstance(listed, list) else [_entry(page, "/Contents")]
    for annotation in _value(page, "/Annots"):
        look = _value(annotation.get_object(), "/AP")
        states = _value(look, "/N")
        yield from [_entry(look, "/N")] if hasattr(states, "get_data") else map(states.raw_get, states)


def _value(dictionary: Any, name: str) -> Any:
    """A value of a dictionary; an empty one if there is none."""
    found = _entry(dictionary, name)
    return {} if found is None else found.get_object()


def _entry(dictionary: Any, name: str) -> Any:
    """A value of a dictionary as it stands there, which may be a reference; None if there is none."""
    return dictionary.raw_get(name) if name in dictionary else None


def _unpacked(stream: Any) -> bytes | None:
    """The content of a stream; None if it has far more than any."""
    from pypdf.errors import LimitReachedError

    try:
        data: bytes = stream.get_data()
    except LimitReachedError:
        return None
    return data
