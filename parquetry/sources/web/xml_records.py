"""Records in untrusted XML, parsed inside the run's process: incrementally and within limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from parquetry.errors import BrokenDocument

MAX_NESTING = 100
"""nesting depth of elements"""
MAX_EVENTS = 4_000_000
"""tags and text pieces. A sitemap may name 50,000 pages."""
MAX_TAG_BYTES = 1024 * 1024
"""bytes of one tag, comment or declaration, or of everything before the first tag"""
_MAX_FIELDS = 100
_MAX_FIELD_CHARACTERS = 16 * 1024
_BLOCK = 64 * 1024


@dataclass
class Field:
    """Element within a record."""

    name: str
    attributes: Mapping[str, str]
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()


@dataclass
class Record:
    """Repeated element with its fields, such as `url` in a sitemap."""

    name: str
    fields: list[Field] = field(default_factory=list)
    """requested children, in document order; 100 at most"""

    def text(self, name: str) -> str:
        """Return the text of the first field with this name; empty if there is none."""
        return next((field.text for field in self.fields if field.name == name), "")


def records(content: bytes, names: Collection[str], wanted: Collection[str], refusal: str) -> Iterator[Record]:
    """Yield the elements with these names at any depth, except those nested in one another.

    Args:
        content: XML.
        names: names of the elements, without namespaces.
        wanted: names of the children to keep.
        refusal: beginning of error messages.

    Raises:
        BrokenDocument: `damaged`, `too-deep` or `too-many-parts`; records yielded before are valid.
    """
    target = _Target(names, wanted)
    try:
        for _ in _parsed(content, target, refusal):
            yield from target.taken()
    except BrokenDocument:
        yield from target.taken()
        raise


def root_of(content: bytes) -> str:
    """Return the name of the first element, without its namespace; empty if the content is not XML."""
    target = _Target((), ())
    try:
        for _ in _parsed(content[:MAX_TAG_BYTES], target, ""):
            if target.root:
                break
    except BrokenDocument:
        pass
    return target.root


def _parsed(content: bytes, target: _Target, refusal: str) -> Iterator[None]:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, XMLParser

    parser = XMLParser(target=target)
    told = quiet = 0
    try:
        for start in range(0, len(content), _BLOCK):
            parser.feed(content[start : start + _BLOCK])
            quiet = quiet + _BLOCK if target.events == told else 0
            told = target.events
            if quiet > MAX_TAG_BYTES:
                raise BrokenDocument("damaged", f"{refusal}: a tag or comment has more than {MAX_TAG_BYTES} bytes")
            if told > MAX_EVENTS:
                raise BrokenDocument("too-many-parts", f"{refusal}: it has more than {MAX_EVENTS:,} tags and texts")
            yield
        parser.close()
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise BrokenDocument("damaged", f"{refusal}: {str(error) or type(error).__name__}") from error


class _Target:
    """Parser target that keeps the fields of records."""

    def __init__(self, names: Collection[str], wanted: Collection[str]) -> None:
        self.events = 0
        self.root = ""
        self._done: list[Record] = []
        self._names, self._wanted = names, wanted
        self._depth = self._begun = 0
        self._record: Record | None = None
        self._field: Field | None = None
        self._characters = 0

    def taken(self) -> list[Record]:
        """Return the records completed since the last call."""
        done, self._done = self._done, []
        return done

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.events += 1
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise BrokenDocument("too-deep", f"its elements are nested deeper than {MAX_NESTING} levels")
        name = tag.rpartition("}")[2]
        if self._depth == 1:
            self.root = name
        if self._record is None:
            if name in self._names:
                self._record, self._begun = Record(name), self._depth
        elif self._depth == self._begun + 1 and name in self._wanted and len(self._record.fields) < _MAX_FIELDS:
            self._field, self._characters = Field(name, attributes), 0
            self._record.fields.append(self._field)
        else:
            # As in ElementTree, the text of an element ends where a child begins.
            self._field = None

    def end(self, _: str) -> None:
        self.events += 1
        if self._record is not None and self._depth == self._begun:
            self._done.append(self._record)
            self._record = None
        elif self._depth == self._begun + 1:
            self._field = None
        self._depth -= 1

    def data(self, text: str) -> None:
        self.events += 1
        self._characters += len(text)
        if self._field is not None and self._characters <= _MAX_FIELD_CHARACTERS:
            self._field.pieces.append(text)

    def close(self) -> Any:
        return None
