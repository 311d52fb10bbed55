"""Finds the main content of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parquetry.extract.builder import has_many_marks
from parquetry.extract.html.nodes import BLOCKS, is_unseen, running_text, walk
from parquetry.extract.html.shape import Shape

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LXML_DEPTH = 256
"""nesting depth below which lxml, and with it the content finder, drops elements"""
MAX_WEIGHT = 300_000
"""elements and table cells above which a page is not passed to the content finder, which takes 30 µs per element"""
MAX_SEARCHED = 20_000_000
"""characters above which a page is not passed to the content finder"""
MIN_SHARE = 0.25
"""minimum share of the text outside the navigation that the content finder has to find"""
FINDER_OPTIONS: dict[str, Any] = {
    "include_comments": False,
    "include_tables": True,
    "include_formatting": False,
    "favor_recall": True,
    "fast": True,
}
"""options of trafilatura"""
_MIN_CHARACTERS = 200
"""characters; a shorter page is all content, and in a longer one at least this many, or half, have to be found"""
_COVERED = 0.9
"""share of the found text that the chosen element has to hold"""
_STRAY = 40
_MAX_GROWTH = 1.5
"""maximum growth from the chosen element to an enclosing one that replaces it; one with more of the found text replaces
it at any size. The additional text is an introduction, a byline or a closing note."""

_BOILERPLATE_TAGS = frozenset({"aside", "search"})
_BOILERPLATE_ROLES = frozenset({"banner", "complementary", "search", "menu", "menubar", "dialog", "alertdialog"})
_BOILERPLATE_NAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|breadcrumbs?|sidebar|side-?bar|footer|cookies?|consent|gdpr|share|sharing|"
    r"social|newsletter|subscribe|related(?:-posts|-articles)?|recommended|advert(?:s|isement)?|ads?|promo|sponsored|"
    r"skip-?(?:link|to-content)|mw-editsection|mw-jump-link|toc|pagination|pager|navbox|catlinks|menu|comments?-form|"
    r"noprint|screen-reader(?:-text)?|visually-hidden|sr-only)(?:$|[\s_-])",
    re.IGNORECASE,
)
_MIN_LINKS = 4
_LINK_SHARE = 0.8
"""share of link text from which a block with at least `_MIN_LINKS` links is navigation, unless it was found as
content"""
_FIND_WINDOW = 60_000
_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class MainContent:
    """The part of a page to write."""

    root: LexborNode | None
    dropped: frozenset[int] = frozenset()
    """ids of elements below `root` to leave out"""
    heading: str | None = None
    """main heading of the page, if it is outside `root`"""
    warnings: tuple[str, ...] = ()

    @classmethod
    def everything(cls, page: LexborHTMLParser, *warnings: str) -> MainContent:
        return cls(page.body, warnings=warnings)


@dataclass(slots=True)
class _Block:
    """Content of a block element; counts of characters cover visible text only."""

    node: LexborNode
    depth: int
    characters: int = 0
    linked: int = 0
    """characters inside links"""
    links: int = 0
    found: int = 0
    """characters that the content finder found as well"""
    headings: int = 0
    """number of `h1` elements inside"""
    first: int = 0
    """position of the first inner block, in the order in which blocks end"""
    place: int = 0
    """position of the block in that order"""


def choose(page: LexborHTMLParser, html: str) -> MainContent:
    """Select the main content of a page.

    The content finder identifies the text; the selection is the smallest element that holds nearly all of that text, so
    that tables, lists and code keep their form, without navigation, recognised by its tag, its name or its links.

    Args:
        page: the parsed page.
        html: the text that the page was parsed from.
    """
    body = page.body
    if body is None:
        return MainContent.everything(page)
    shape = Shape.of(body)
    found = ""
    warnings: tuple[str, ...] = ()
    if shape.depth > LXML_DEPTH - 16:
        told = f"elements are nested {shape.depth} levels deep"
        warnings = (f"{told}: too deep to find the main content, kept the whole page",)
    elif shape.weight > MAX_WEIGHT or len(html) > MAX_SEARCHED or has_many_marks(body.text()):
        warnings = ("the page is too large to find the main content: kept the whole page",)
    else:
        found = _find_content(html)
    survey = _Survey(found)
    walk(body, survey.enter, survey.leave)
    blocks = survey.finish(body)
    boilerplate = _outermost(block for block in blocks if _is_boilerplate(block, blocks[-1]))
    shown = blocks[-1].characters - sum(block.characters for block in boilerplate)
    marked = blocks[-1].found
    if shown <= _MIN_CHARACTERS or marked < MIN_SHARE * shown or marked < min(_MIN_CHARACTERS, shown / 2):
        if not warnings and shown > _MIN_CHARACTERS:
            warnings = ("the main content could not be told from the rest: kept the page without its navigation",)
        dropped = boilerplate if shown else []
        return MainContent(body, frozenset(block.node.mem_id for block in dropped), warnings=warnings)
    known = {block.place for block in boilerplate}
    dropped = _outermost(block for block in blocks if block.place in known or _is_link_list(block))
    root = _root(blocks, dropped)
    dropped_ids = frozenset(block.node.mem_id for block in dropped) - {root.node.mem_id}
    return MainContent(root.node, dropped_ids, None if root.headings else _main_heading(page), warnings)


def _root(blocks: list[_Block], dropped: list[_Block]) -> _Block:
    """Return the smallest element with nearly all of the found text, extended by small neighbouring content."""
    place = next(place for place, block in enumerate(blocks) if block.found >= _COVERED * blocks[-1].found)
    root = blocks[place]
    for outer in blocks[place + 1 :]:
        if outer.depth >= root.depth:
            continue
        left_out = sum(block.characters for block in dropped if outer.first <= block.place < outer.place)
        if outer.found > root.found + _STRAY or outer.characters - left_out <= _MAX_GROWTH * root.characters:
            root = outer
    return root


def _find_content(html: str) -> str:
    """Return the text that trafilatura takes for the content, reduced to letters and digits."""
    import logging

    import trafilatura

    # trafilatura logs what it could not parse; the loss is measured here instead.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    found = trafilatura.extract(html, **FINDER_OPTIONS)
    return _key(found or "")


def _key(text: str) -> str:
    return _WORDS.sub("", text).lower()


class _Survey:
    """Counts, for each block element, its visible text and how much of it was found to be content."""

    def __init__(self, found: str) -> None:
        self._found = found
        self._cursor = 0
        self._open: list[_Block] = []
        self._blocks: list[_Block] = []
        self._text: list[str] = []
        self._loose = _Block(None, -1)  # type: ignore[arg-type]
        self._links = 0

    def enter(self, node: LexborNode) -> bool:
        top = self._open[-1] if self._open else self._loose
        if node.is_text_node:
            text = node.text_content or ""
            self._text.append(text)
            if self._links:
                top.linked += len(_key(text))
            return False
        if is_unseen(node):
            return False
        tag = node.tag
        if tag == "a":
            self._links += 1
            top.links += 1
        elif tag in BLOCKS:
            self._flush()
            self._open.append(_Block(node, len(self._open), headings=int(tag == "h1"), first=len(self._blocks)))
        return True

    def leave(self, node: LexborNode) -> None:
        if node.tag == "a":
            self._links -= 1
        elif node.tag in BLOCKS:
            self._flush()
            self._close(self._open.pop(), self._open[-1] if self._open else self._loose)

    def finish(self, body: LexborNode) -> list[_Block]:
        """Return all block elements, inner before outer, with the body last."""
        self._flush()
        self._loose.node = body
        self._loose.place = len(self._blocks)
        return [*self._blocks, self._loose]

    def _close(self, block: _Block, outer: _Block) -> None:
        block.place = len(self._blocks)
        self._blocks.append(block)
        outer.characters += block.characters
        outer.linked += block.linked
        outer.links += block.links
        outer.found += block.found
        outer.headings += block.headings

    def _flush(self) -> None:
        key = _key("".join(self._text))
        self._text.clear()
        if not key:
            return
        top = self._open[-1] if self._open else self._loose
        top.characters += len(key)
        # Both texts are in document order, so searching a window after the last match is enough, and long pages stay
        # fast.
        place = self._found.find(key, self._cursor, self._cursor + _FIND_WINDOW + len(key))
        if place >= 0:
            top.found += len(key)
            if len(key) > 40:
                self._cursor = place + len(key)


def _is_boilerplate(block: _Block, body: _Block) -> bool:
    node = block.node
    tag = node.tag or ""
    if tag == "body" or block.characters > body.characters / 2:
        return False
    attributes = node.attributes
    role = (attributes.get("role") or "").lower()
    if tag in ("nav", "footer") or role in ("navigation", "contentinfo"):
        return True
    # The names checked below may be wrong: the content finder takes precedence.
    if block.found > block.characters / 2:
        return False
    if tag in _BOILERPLATE_TAGS or role in _BOILERPLATE_ROLES:
        return True
    if tag == "header":
        return not block.headings and block.linked > block.characters / 2
    if tag in ("main", "article", "h1", "h2", "h3", "td", "tr", "tbody") or block.headings:
        return False
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    return bool(_BOILERPLATE_NAME.search(names))


def _is_link_list(block: _Block) -> bool:
    return (
        block.links >= _MIN_LINKS
        and not block.headings
        and block.linked >= _LINK_SHARE * block.characters
        and block.found <= block.characters / 5
        and block.node.tag not in ("td", "tr", "tbody", "body")
    )


def _outermost(blocks: Iterable[_Block]) -> list[_Block]:
    """Remove blocks inside other given blocks; the order is inner before outer."""
    kept: list[_Block] = []
    for block in blocks:
        while kept and kept[-1].place >= block.first:
            kept.pop()
        kept.append(block)
    return kept


def _main_heading(page: LexborHTMLParser) -> str | None:
    headings = page.css("h1")
    if len(headings) != 1 or is_unseen(headings[0]):
        return None
    site = page.css_first('meta[property="og:site_name"]')
    heading = running_text(headings[0])
    return heading if site is None or heading != site.attributes.get("content") else None
