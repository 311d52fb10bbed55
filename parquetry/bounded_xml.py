"""XML parser for untrusted documents: no entities, no external content, and a bound on default attributes."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import TreeBuilder

from parquetry.errors import BrokenDocument

MOST_DEFAULTS = 2000
"""maximum characters of default values of attributes in a document type; an element without them receives them all"""

MAX_DECLARED = 10_000
"""maximum attributes in a document type; the parser compares each of an element with all before it"""


class BoundedXml:
    """Parser of one document; for `feed` and `close` see `parser`."""

    def __init__(self) -> None:
        from defusedxml.ElementTree import XMLParser

        self.parser: Any = XMLParser(target=TreeBuilder())
        self.parser.parser.AttlistDeclHandler = self._declare
        self._characters = 0
        self._declared = 0

    @property
    def leaves_out_defaults(self) -> bool:
        """True if a document declares so many default values that elements get only the attributes written in them."""
        return self._characters > MOST_DEFAULTS

    def _declare(self, _element: str, attribute: str, _kind: str, default: str | None, _required: bool) -> None:
        self._declared += 1
        if self._declared > MAX_DECLARED:
            raise BrokenDocument("too-many-parts", f"its document type declares more than {MAX_DECLARED:,} attributes")
        if default is not None:
            self._characters += len(attribute) + len(default)
            self.parser.parser.specified_attributes = self.leaves_out_defaults
