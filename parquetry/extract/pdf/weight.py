"""Measures how much the pages of a PDF draw, before PDFium, which sets no limits, draws them.

Content counts each time that it is referenced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

FREE_BYTES = 8_000_000
"""bytes of content that the pages of any document may draw; an engine takes up to a second and 100 MB per million"""
MOST_DRAWN = 32
"""bytes of content allowed per byte of the file"""
MAX_DEPTH = 100
"""levels of nested forms"""
_TOO_DEEP = 1 << 60
_PIXELS = 1000
"""pixels of a picture that count as one byte of content"""
_MOST_NODES = 100_000
"""inner nodes of the page tree passed without reaching a page; the tree may be circular"""

_DRAWN = re.compile(rb"/([^\s/<>\[\](){}%]++)\s++Do(?![^\s/<>\[\](){}%])")
_LONG_MEANING = re.compile(rb"<([0-9A-Fa-f\s]{128,})>")
_ESCAPED = re.compile(rb"#([0-9A-Fa-f]{2})")


class Weights:
    """The remaining amount of content that the pages of a document may draw.

    Args:
        reader: a `OneByOneReader` of the document; None if pypdf cannot open it, in which case there is no limit.
        errors: exceptions that pypdf raises on damaged input.
        size: size of the file in bytes.
    """

    def __init__(self, reader: Any, errors: tuple[type[Exception], ...], size: int) -> None:
        self._errors = errors
        self._reader = reader
        self._pages = _pages(reader) if reader is not None else iter(())
        self._known: dict[int, int] = {}
        self._meant: dict[int, int] = {}
        self._left = FREE_BYTES + MOST_DRAWN * size
        self.may_attach = True
        """False if no file is attached to the page that was allowed last"""

    def allows_next(self) -> bool:
        """Return True and deduct the content of the next page, in page order, if it may be drawn; else return False."""
        from pypdf.errors import LimitReachedError

        weight = 0
        self.may_attach = True
        try:
            page, resources = next(self._pages, ({}, {}))
            weight = sum(self._drawn(content, resources, 0) for content in self._shown(page))
        except LimitReachedError:
            # The generator has ended with it: of the pages that follow, none would be measured.
            self._left = -1
        except self._errors:
            pass
        if weight > self._left:
            return False
        self._left -= weight
        return True

    def _shown(self, page: Any) -> Iterator[Any]:
        """Yield references to the content of a page and to the appearances of its annotations."""
        listed = _value(page, "/Contents")
        yield from listed if isinstance(listed, list) else [_entry(page, "/Contents")]
        attaches = False
        for annotation in _value(page, "/Annots"):
            attaches = attaches or not self._reader.lacks(annotation, "/FileAttachment")
            if self._reader.lacks(annotation, "/AP"):
                continue
            look = _value(annotation.get_object(), "/AP")
            states = _value(look, "/N")
            if hasattr(states, "get_data"):
                yield _entry(look, "/N")
            else:
                yield from (_entry(states, state) for state in states)
        self.may_attach = attaches

    def _drawn(self, named: Any, resources: Any, depth: int) -> int:
        """Return the bytes of content that an object draws, counting nested pictures and forms at each reference."""
        if depth > MAX_DEPTH:
            return _TOO_DEEP
        key = getattr(named, "idnum", None)
        if key is None:
            return 0
        if key not in self._known:
            # A form that contains itself never ends.
            self._known[key] = _TOO_DEEP
            weight = 0
            with suppress(*self._errors):
                weight = self._weight(named.get_object(), resources, depth)
            self._known[key] = weight
            self._reader.forget(named)
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
        """Return the most characters that one code of the fonts maps to; 1 for short mappings such as ligatures."""
        most = 1
        for font in fonts.values():
            told = _entry(font.get_object(), "/ToUnicode")
            key = getattr(told, "idnum", None)
            if key is None:
                continue
            if key not in self._meant:
                data = _unpacked(told.get_object()) or b""
                self._reader.forget(told)
                self._meant[key] = max(map(len, _LONG_MEANING.findall(data)), default=4) // 4
            most = max(most, self._meant[key])
        return most


def _pages(reader: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the pages in order, each with its own or inherited resources."""
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


def _value(dictionary: Any, name: str) -> Any:
    """Return a resolved value of a dictionary; an empty dictionary if it is missing."""
    found = _entry(dictionary, name)
    return {} if found is None else found.get_object()


def _entry(dictionary: Any, name: str) -> Any:
    """Return a value of a dictionary as stored, possibly a reference; None if it is missing."""
    return dictionary.raw_get(name) if name in dictionary else None


def _unpacked(stream: Any) -> bytes | None:
    """Return the content of a stream; None if it exceeds pypdf's limit."""
    from pypdf.errors import LimitReachedError

    try:
        data: bytes = stream.get_data()
    except LimitReachedError:
        return None
    return data
