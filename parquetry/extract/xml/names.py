"""Names and texts of XML elements, whatever their namespace."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_LEVEL = 20
"""level of a heading beyond which those below have the same; real documents have less than ten"""
_LEVELS = 4
"""levels of elements about a part, in which its title stands"""
_APART_NAMES = (
    "p para simpara list-item listitem li member title break br td th entry stentry cell row tr label term def"
)
_APART = frozenset(_APART_NAMES.split())
"""elements whose text stands apart from that around"""


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace; empty for comments and instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def text_of(element: Element) -> str:
    """Return all text within an element, on one line."""
    return " ".join("".join(element.itertext()).split())


def spaced_text(element: Element) -> str:
    """Return all text within an element on one line, with spaces around paragraphs, items and cells."""
    pieces: list[str] = []
    left: list[Element | str] = [element]
    while left:
        piece = left.pop()
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        if not isinstance(piece.tag, str):
            continue
        space = " " if local_name(piece) in _APART else ""
        pieces.append(space + (piece.text or ""))
        left.append(space)
        for child in reversed(piece):
            left += [child.tail or "", child]
    return " ".join("".join(pieces).split())


def title_of(
    element: Element, titles: Collection[str], information: Collection[str] = (), levels: int = _LEVELS
) -> Element | None:
    """Return the title of a part of a document; None if it has none.

    Args:
        element: the part.
        titles: names of titles.
        information: names of elements about a part, in which its title may stand.
        levels: levels of such elements to look into.
    """
    for child in element:
        name = local_name(child)
        if name in titles:
            return child
        if name in information and levels and (title := title_of(child, titles, information, levels - 1)) is not None:
            return title
    return None
