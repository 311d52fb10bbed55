"""A parser for the XML of strangers: no entities, nothing loaded, and few attributes that nobody has written."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import TreeBuilder

from parquetry.errors import BrokenDocument

MOST_DEFAULTS = 2000
"""characters of attributes that a document type declares with a value; each element without them is given them all"""

MAX_DECLARED = 10_000
"""attributes that a document type declares; the parser compares each of an element with all before it"""


class BoundedXml:
    """Parses one document; for `feed` and `close` see `parser`."""

    def __init__(self) -> None:
        from defusedxml.ElementTree import XMLParser

        self.parser: Any = XMLParser(target=TreeBuilder())
        self.parser.parser.AttlistDeclHandler = self._declare
        self._characters = 0
        self._declared = 0

    @property
    def leaves_out_defaults(self) -> bool:
        """Whether so many attributes are declared with values that elements have only those that stand there."""
        return self._characters > MOST_DEFAULTS

    def _declare(self, _element: str, attribute: str, _kind: str, default: str | None, _required: bool) -> None:
        self._declared += 1
        if self._declared > MAX_DECLARED:
            raise BrokenDocument("too-many-parts", f"its document type declares more than {MAX_DECLARED:,} attributes")
        if default is not None:
            self._characters += len(attribute) + len(default)
            self.parser.parser.specified_attributes = self.leaves_out_defaults
