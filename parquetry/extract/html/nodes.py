"""Traversal of a parsed page: visible content, and the running text of elements."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_BLOCK_NAMES = (
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre search section summary table "
    "caption tbody td tfoot th thead tr ul"
)
_DROPPED_NAMES = (
    "script style template noscript head iframe object embed canvas svg audio video map button select datalist option "
    "input textarea progress meter frameset link meta title -comment !doctype area col colgroup"
)
BLOCKS = frozenset(_BLOCK_NAMES.split())
DROPPED = frozenset(_DROPPED_NAMES.split())
_UNSEEN_CLASSES = frozenset(
    {
        "reference",
        "mw-editsection",
        "linenos",
        "lineno",
        "linenodiv",
        "gutter",
        "line-numbers",
        "linenumbers",
        "blob-num",
    }
)
"""classes of footnote marks, edit links and line numbers of code, which are not part of the text"""
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])|mso-hide\s*:\s*all",
    re.IGNORECASE,
)
_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")
_ZERO_WIDTH = str.maketrans("", "", "\u200b\u2060")
_SKIP_LINK = re.compile(r"\s*(?:skip|jump) to (?:the )?(?:main |page )?\w+\s*$", re.IGNORECASE)
_SPACED_COMMA = re.compile(r" ([,;]) ")
_UNTELLING_ALT = re.compile(
    r"^\W*$|\.(png|jpe?g|gif|svg|webp|bmp|ashx)$|^(image|img|photo|picture|logo|icon|avatar|spacer|blank)\W*\d*$",
    re.IGNORECASE,
)


def walk(root: LexborNode, enter: Callable[[LexborNode], bool], leave: Callable[[LexborNode], None]) -> None:
    """Visit everything below `root` in document order, however deep, without recursion.

    Args:
        root: the start element; not visited itself.
        enter: called for every node; if it returns False, the content of the node is skipped.
        leave: called after the content of every node entered.
    """
    above: list[LexborNode] = []
    node = root.child
    while node is not None or above:
        if node is None:
            node = above.pop()
            leave(node)
            node = node.next
        elif not enter(node):
            node = node.next
        else:
            above.append(node)
            node = node.child


def is_unseen(node: LexborNode) -> bool:
    """Return True if the element is not visible as text to a reader of the page."""
    if node.tag in DROPPED:
        return True
    attributes = node.attributes
    if not attributes:
        return False
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return True
    if (attributes.get("aria-hidden") or "").lower() == "true":
        return True
    style = attributes.get("style")
    if style and _HIDING_STYLE.search(style):
        return True
    return not _UNSEEN_CLASSES.isdisjoint((attributes.get("class") or "").split())


def image_text(node: LexborNode) -> str:
    """Return the alternative text of an image as Markdown; empty if it says nothing."""
    alt = " ".join((node.attributes.get("alt") or "").split())
    return "" if _UNTELLING_ALT.search(alt) else f"![{alt}]"


def formula_text(node: LexborNode) -> str | None:
    """Return the TeX source of a formula, if it has one."""
    source = node.attributes.get("alttext")
    if not source:
        note = node.css_first('annotation[encoding="application/x-tex"]')
        source = note.text() if note is not None else None
    return f"${' '.join(source.split())}$" if source else None


def _is_skip_link(node: LexborNode) -> bool:
    return (node.attributes.get("href") or "").startswith("#") and bool(_SKIP_LINK.match(node.text() or ""))


class RunningText:
    """Collects inline content: text, line breaks, code in backticks, images' texts."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._formulas = 0
        """number of open formulas without a source; no formula inside them has one either"""

    def enter(self, node: LexborNode) -> bool:
        if node.is_text_node:
            self._pieces.append(_SPACE.sub(" ", (node.text_content or "").translate(_ZERO_WIDTH)))
            return False
        if is_unseen(node):
            return False
        tag = node.tag or ""
        if tag == "br":
            self._pieces.append("\n")
        elif tag == "img":
            self._pieces.append(f" {image_text(node)} ")
        elif tag == "a" and _is_skip_link(node):
            return False
        elif tag in ("code", "tt", "samp") and (code := " ".join((node.text() or "").split())):
            self._pieces.append(f"`{code}`" if "`" not in code else code)
            return False
        elif tag == "math":
            formula = formula_text(node) if not self._formulas else None
            if formula is not None:
                self._pieces.append(f" {formula} ")
                return False
            self._formulas += 1
        elif tag == "li":
            self._pieces.append("; " if "".join(self._pieces[-3:]).strip() else " ")
        elif tag in BLOCKS or "-" in tag:
            self._pieces.append(" ")
        return True

    def leave(self, node: LexborNode) -> None:
        if node.tag == "math":
            self._formulas -= 1
        if node.tag in BLOCKS or "-" in (node.tag or ""):
            self._pieces.append(" ")

    def take(self) -> str:
        """Return the text so far, with single spaces and one line per line break, and start over."""
        text = "".join(self._pieces)
        self._pieces.clear()
        return "\n".join(_SPACE.sub(" ", line).strip() for line in text.split("\n")).strip()


def running_text(node: LexborNode) -> str:
    """Return the text of an element on one line."""
    text = RunningText()
    walk(node, text.enter, text.leave)
    return _SPACED_COMMA.sub(r"\1 ", " ".join(text.take().split()))


def raw_text(node: LexborNode) -> str:
    """Return the text of an element unchanged, line breaks included; for code."""
    pieces: list[str] = []

    def enter(inner: LexborNode) -> bool:
        if inner.is_text_node:
            pieces.append(inner.text_content or "")
            return False
        if inner.tag == "br":
            pieces.append("\n")
        return not is_unseen(inner)

    walk(node, enter, lambda inner: pieces.append("\n") if inner.tag in ("div", "p", "li") else None)
    return "".join(pieces)
