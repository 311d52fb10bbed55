"""Parses XML from anywhere within bounds: its own entities are expanded, and what is not well-formed is repaired."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, ParseError

from parquetry.bounded_xml import MOST_DEFAULTS, BoundedXml
from parquetry.errors import BrokenDocument
from parquetry.extract.xml.entities import Expanded, expand_entities
from parquetry.extract.xml.repair import repair

_DECLARATION = re.compile(r"\A\s*<\?xml\b[^>]*\?>\s*")
_NO_DEFAULTS = f"attributes that only its type declares, with more than {MOST_DEFAULTS} characters, were left out"
_NAMED = 5
"""entities that a warning names"""


def parse(text: str) -> tuple[Element, list[str]]:
    """Return the root element of an XML text, and warnings.

    Args:
        text: decoded XML; its declaration of an encoding no longer holds.

    Raises:
        BrokenDocument: `unsafe-xml` if entities refer to files or to too much; `damaged` if the text is not XML.
    """
    declaration = _DECLARATION.match(text)
    lines = declaration[0].count("\n") if declaration else 0
    body = (text[declaration.end() :] if declaration else text).strip()
    expanded = expand_entities(body)
    warnings = _told(expanded)
    # Faults are told with their line.
    content = "\n" * lines + expanded.text
    try:
        root, left_out = _parsed(content)
    except ParseError as error:
        root, left_out = _repaired(content, error)
        warnings.append(f"repaired, because it is not well-formed XML: {_fault(error)}")
    return root, warnings + ([_NO_DEFAULTS] if left_out else [])


def _repaired(content: str, fault: ParseError) -> tuple[Element, bool]:
    try:
        root, left_out = _parsed(repair(content))
    except ParseError:
        raise BrokenDocument("damaged", f"not XML: {_fault(fault)}") from fault
    if len(root) == 0 or not any(text.strip() for text in root.itertext()):
        raise BrokenDocument("damaged", f"not XML: {_fault(fault)}") from fault
    outside = [root.text, *(child.tail for child in root)]
    alone = len(root) == 1 and not any(text and text.strip() for text in outside)
    return root[0] if alone else root, left_out


def _parsed(content: str) -> tuple[Element, bool]:
    """Parse XML without entities; return its root, and whether default values of attributes were left out."""
    from defusedxml.common import DefusedXmlException

    bounded = BoundedXml()
    try:
        bounded.parser.feed(content)
        return bounded.parser.close(), bounded.leaves_out_defaults
    except DefusedXmlException as error:
        raise BrokenDocument(
            "unsafe-xml", f"declares entities or refers to other files: {type(error).__name__}"
        ) from error


def _fault(error: ParseError) -> str:
    return str(error).removeprefix("not well-formed ")


def _told(expanded: Expanded) -> list[str]:
    told = []
    if expanded.assumed:
        told.append(f"entities that it does not declare are read as in HTML: {_names(expanded.assumed)}")
    if expanded.unknown:
        told.append(f"entities that it does not declare are kept as they are: {_names(expanded.unknown)}")
    return told


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"&{name};" for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
