"""Expands the entities that an XML document declares itself, within bounds; nothing is loaded.

The result neither declares entities nor refers to any, so that the parser can refuse both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.entities import html5
from typing import Final

from parquetry.errors import BrokenDocument

MAX_ENTITY = 10_000
"""characters of one entity, with all that it refers to"""
FREE_EXPANSION = 100_000
"""characters that the entities of any document may add; entities of larger documents may add as many as they have"""
MAX_NESTING = 20
"""entities that refer to each other"""

_PREDEFINED = frozenset({"amp", "lt", "gt", "quot", "apos"})
_CLOSING: Final = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_SPACE = re.compile(r"\s+")
_DOCTYPE = re.compile(
    r"<!DOCTYPE\s+[^\s\[>\"']+(\s+(?:SYSTEM|PUBLIC)\b(?:\s*+(?:\"[^\"]*\"|'[^']*'))*+)?\s*+(\[)?", re.IGNORECASE
)
_DECLARATION = re.compile(r"<!([A-Z]+)\b((?:[^\"'<>]++|\"[^\"]*\"|'[^']*')*+)>")
_PARAMETER = re.compile(r"%[\w.:-]+;")
_ENTITY = re.compile(
    r"\s+(%\s+)?([^\s%\"']+)\s+"
    r"(?:\"([^\"]*)\"|'([^']*)'|(?:SYSTEM|PUBLIC)\b((?:\s*+(?:\"[^\"]*\"|'[^']*'))*+)\s*+(NDATA\b)?)"
)
_MARK = re.compile(r"<!--|<!\[CDATA\[|<\?|&([^\s&;<>\"'#]{1,100});")
_CHARACTER = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_ESCAPED: Final = str.maketrans({'"': "&#34;", "'": "&#39;", ">": "&#62;"})
_MARKUP: Final = str.maketrans({"&": "&#38;", "<": "&#60;"})


@dataclass(frozen=True, slots=True)
class Expanded:
    """An XML text without entities."""

    text: str
    """the text; its lines have the numbers that they had before"""
    assumed: tuple[str, ...]
    """names of characters of HTML that are not declared, though the document names no external declarations"""
    unknown: tuple[str, ...]
    """names that are declared nowhere; their references are kept as text"""


def expand_entities(text: str) -> Expanded:
    """Replace references to entities by their texts, and remove the declarations.

    Names that are not declared have the meaning that they have in HTML, which includes those of DocBook and JATS.

    Args:
        text: XML without its declaration, `<?xml ...?>`.

    Raises:
        BrokenDocument: `unsafe-xml` if an entity refers to a file, to itself, or to more text than a document needs.
    """
    doctype = _read_doctype(text)
    start, end = (doctype.start, doctype.end) if doctype else (0, 0)
    expansion = _Expansion(doctype.entities if doctype else {}, max(FREE_EXPANSION, len(text)))
    subset = "".join(expansion.expand(piece) for piece in doctype.kept) if doctype else ""
    body = expansion.expand(text[end:])
    assumed = () if doctype and doctype.external else tuple(expansion.assumed)
    return Expanded(text[:start] + subset + body, assumed, tuple(expansion.unknown))


class _Expansion:
    """Expands references to the entities of one document."""

    def __init__(self, entities: dict[str, str], most: int) -> None:
        self._entities = entities
        self._most = most
        self._added = 0
        self._ready: dict[str, str] = {}
        self._open: list[str] = []
        self.assumed: dict[str, None] = {}
        self.unknown: dict[str, None] = {}

    def expand(self, text: str, most: int | None = None) -> str:
        """Expand all references outside of comments, instructions and CDATA, to at most `most` characters."""
        pieces: list[str] = []
        size = kept = at = 0
        while found := _MARK.search(text, at):
            at = found.end()
            if found[1] is None:
                closed = text.find(_CLOSING[found[0]], at)
                if closed < 0:
                    break
                at = closed + len(_CLOSING[found[0]])
            elif found[1] not in _PREDEFINED:
                value = self._value(found[1])
                pieces += [text[kept : found.start()], value]
                kept = at
                size += len(value)
                self._added += len(value)
                if size > (most or self._most) or self._added > self._most:
                    raise _too_much()
        return "".join([*pieces, text[kept:]])

    def _value(self, name: str) -> str:
        if name in self._ready:
            return self._ready[name]
        declared = self._entities.get(name)
        if declared is not None:
            value = self._declared(name, declared)
        elif (character := html5.get(f"{name};")) is not None:
            self.assumed[name] = None
            value = character.translate(_MARKUP).translate(_ESCAPED)
        else:
            self.unknown[name] = None
            value = f"&amp;{name};"
        self._ready[name] = value
        return value

    def _declared(self, name: str, value: str) -> str:
        if name in self._open:
            raise BrokenDocument("unsafe-xml", f"the entity {name} refers to itself")
        if len(self._open) >= MAX_NESTING or len(value) > MAX_ENTITY:
            raise _too_much()
        self._open.append(name)
        value = self.expand(_CHARACTER.sub(_character, value), MAX_ENTITY)
        self._open.pop()
        if len(value) > MAX_ENTITY:
            raise _too_much()
        # What is no markup may stand in the value of an attribute.
        return value if "<" in value else value.translate(_ESCAPED)


def _too_much() -> BrokenDocument:
    return BrokenDocument("unsafe-xml", "its entities expand to more text than a document needs")


def _character(reference: re.Match[str]) -> str:
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else reference[0]


@dataclass(slots=True)
class _Doctype:
    """A document type declaration."""

    start: int
    """0-based offset of its first character"""
    end: int
    """0-based offset one past its last character"""
    external: bool
    """True if it names a file with further declarations"""
    kept: list[str]
    """its pieces, without those about entities"""
    entities: dict[str, str]
    """name -> value as written"""


def _read_doctype(text: str) -> _Doctype | None:
    """Return the document type of an XML text; None if there is none, or if it cannot be read."""
    start = _after_miscellany(text, 0)
    opened = _DOCTYPE.match(text, start)
    if opened is None:
        return None
    doctype = _Doctype(start, opened.end(), opened[1] is not None, [opened[0]], {})
    if opened[2] and not _read_subset(text, doctype):
        return None
    return doctype


def _read_subset(text: str, doctype: _Doctype) -> bool:
    """Read the declarations between the brackets; return False if they do not end."""
    at = doctype.end
    while True:
        after = _after_miscellany(text, at)
        doctype.kept.append("\n" * text.count("\n", at, after))
        at = after
        if text.startswith("]", at):
            doctype.end = at
            return True
        declared = _DECLARATION.match(text, at)
        found = declared or _PARAMETER.match(text, at)
        if found is None:
            return False
        at = found.end()
        if declared and declared[1] != "ENTITY":
            doctype.kept.append(declared[0])
        else:
            doctype.kept.append("\n" * found[0].count("\n"))
            if declared:
                _declare(declared[2], doctype.entities)


def _declare(declaration: str, entities: dict[str, str]) -> None:
    """Note an entity; the first declaration of a name counts.

    Raises:
        BrokenDocument: `unsafe-xml` if the entity is a file. One that is no text, `NDATA`, is never read.
    """
    found = _ENTITY.match(declaration)
    if found is None:
        return
    parameter, name, double, single, file, notation = found.groups()
    if file is not None and notation is None:
        raise BrokenDocument("unsafe-xml", f"it refers to another file: the entity {name} is{file}"[:300])
    if parameter is None and notation is None:
        entities.setdefault(name, double if double is not None else single)


def _after_miscellany(text: str, at: int) -> int:
    """Return the offset after white space, comments and processing instructions."""
    while True:
        mark = next((mark for mark in ("<!--", "<?") if text.startswith(mark, at)), None)
        if mark:
            closed = text.find(_CLOSING[mark], at)
            if closed < 0:
                return at
            at = closed + len(_CLOSING[mark])
        elif space := _SPACE.match(text, at):
            at = space.end()
        else:
            return at
