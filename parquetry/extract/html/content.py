"""Finds the main content of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parquetry.extract.builder import has_many_marks
from parquetry.extract.html.nodes import is_unseen, running_text
from parquetry.extract.html.shape import Shape
from parquetry.extract.html.survey import PageBlock, survey

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
"""share of the found text that the core of the content holds"""
_COVERED_BY_ARTICLE = 0.8
"""the same share, in a page that says that it is one article"""
_STRAY = 40
"""characters up to which found text outside the chosen element does not count"""
_FOUND = 0.2
"""share of found text up to which a block counts as not found"""
_TEASERS_FOUND = 0.75
"""share of found text up to which teasers on a page with one subject are left out"""
_TEASERS_LINKED = 0.25
"""share of link text from which teasers on any other page are left out"""
_FOOTER_LINKED = 0.25
"""share of link text up to which the footer of an article is content"""
_MAX_GROWTH = 1.25
"""maximum growth from the found text to an element that is marked as the content"""
_CONTAINERS = frozenset({"main", "content", "main-content", "maincontent", "article", "page-content", "article-body"})
"""roles and ids of elements that are the content"""

_BOILERPLATE_TAGS = frozenset({"aside", "search"})
_BOILERPLATE_ROLES = frozenset({"banner", "complementary", "search", "menu", "menubar", "dialog", "alertdialog"})
_BOILERPLATE_NAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|breadcrumbs?|sidebar|side-?bar|footer|cookies?|consent|gdpr|share|sharing|"
    r"social|newsletter|subscribe|related(?:-(?:posts|articles|stories|links|content|searches))?|recommended|outbrain|"
    r"taboola|disqus|comments(?:-(?:area|list|section|wrapper))?|comments?-form|(?:author|user)-bio|about-(?:the-)?author|"
    r"advert(?:s|isement)?|ads?|promo|sponsored|skip-?(?:link|to-content)|mw-editsection|mw-jump-link|toc|pagination|"
    r"pager|navbox|catlinks|menu|noprint|screen-reader(?:-text)?|visually-hidden|sr-only)(?:$|[\s_-])",
    re.IGNORECASE,
)
"""names of classes and ids, with `camelCase` written as `camel-Case`"""
_CAMEL = re.compile(r"([a-z])([A-Z])")
_MIN_LINKS = 4
"""links from which a block is a list of links, in a page that does not say that it is one article"""
_HEADLINE = 25
"""mean letters and digits of the links in a list from which they are headlines of other pages"""
_LINK_SHARE = 0.8
"""share of link text from which a block is a list of links, unless it was found as content"""


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


def choose(page: LexborHTMLParser, html: str) -> MainContent:
    """Select the main content of a page.

    The content finder identifies the text. The smallest element that holds most of it is the core of the content: what
    stands in it stays, so that tables, lists and code keep their form, without navigation, recognised by its tag, its
    name or its links. What stands outside the core stays if it was found. If little was found, the whole page stays.

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
    blocks = survey(body, found)
    boilerplate = _outermost(block for block in blocks if _is_boilerplate(block, blocks[-1]))
    shown = blocks[-1].characters - sum(block.characters for block in boilerplate)
    marked = blocks[-1].found
    is_article = _is_article(page)
    core = _core(blocks, is_article) if marked else blocks[-1]
    least_found = max(MIN_SHARE * shown, min(_MIN_CHARACTERS, shown / 2))
    certain = marked >= _MIN_CHARACTERS and (core.characters >= shown / 2 or is_article)
    if shown <= _MIN_CHARACTERS or (not certain and marked < least_found):
        if not warnings and shown > _MIN_CHARACTERS:
            warnings = ("the main content could not be told from the rest: kept the page without its navigation",)
        dropped = boilerplate if shown else []
        return MainContent(body, frozenset(block.node.mem_id for block in dropped), warnings=warnings)
    root = _root(blocks, core)
    known = {block.place for block in boilerplate}
    inside = blocks[root.first : root.place]
    dropped = _outermost(block for block in inside if block.place in known or _is_left_out(block, core, is_article))
    dropped_ids = frozenset(block.node.mem_id for block in dropped)
    return MainContent(root.node, dropped_ids, None if root.headings else _main_heading(page), warnings)


def _core(blocks: list[PageBlock], is_article: bool) -> PageBlock:
    """Return the smallest block that holds most of the found text, with other blocks of its kind beside it."""
    least = (_COVERED_BY_ARTICLE if is_article else _COVERED) * blocks[-1].found
    core = next(block for block in blocks if block.found >= least)
    if core.first == core.place or any(_is_like(block, core) for block in _beside(blocks, core)):
        core = _parent(blocks, core)
    if is_article:
        return core
    for outer in blocks[core.place + 1 :]:
        if outer.depth < core.depth and _is_container(outer.node) and outer.characters <= _MAX_GROWTH * core.characters:
            core = outer
    return core


def _is_container(node: LexborNode) -> bool:
    return node.tag in ("main", "article") or bool(
        {(node.attributes.get("role") or "").lower(), (node.attributes.get("id") or "").lower()} & _CONTAINERS
    )


def _beside(blocks: list[PageBlock], core: PageBlock) -> Iterator[PageBlock]:
    outer = _parent(blocks, core)
    return (block for block in blocks[outer.first : outer.place] if block.depth == core.depth and block is not core)


def _is_like(block: PageBlock, core: PageBlock) -> bool:
    """Return True if a block is another post of the thread that the core is one of."""
    names = core.node.attributes.get("class")
    return (
        bool(names)
        and block.node.tag == core.node.tag
        and block.node.attributes.get("class") == names
        and block.linked < block.characters / 4
        and not block.teasers
    )


def _is_article(page: LexborHTMLParser) -> bool:
    """Return True if a page says that it is one article."""
    kind = page.css_first('meta[property="og:type"]')
    if kind is not None and (kind.attributes.get("content") or "").lower() == "article":
        return True
    return len(page.css('[itemprop~="articleBody"]')) == 1 or len(page.css("article")) == 1


def _parent(blocks: list[PageBlock], block: PageBlock) -> PageBlock:
    return next((outer for outer in blocks[block.place + 1 :] if outer.depth < block.depth), block)


def _root(blocks: list[PageBlock], core: PageBlock) -> PageBlock:
    """Return the smallest element around the core that holds the found text beside it, too."""
    root = core
    for outer in blocks[core.place + 1 :]:
        if outer.depth < root.depth and outer.found > root.found + _STRAY:
            root = outer
    return root


def _is_left_out(block: PageBlock, core: PageBlock, is_article: bool) -> bool:
    if core.first <= block.place < core.place:
        return _is_link_list(block, core, is_article) or _is_teaser(block, core, is_article)
    around = block.first <= core.first and core.place <= block.place
    return not around and block.found <= _FOUND * block.characters


def _find_content(html: str) -> str:
    """Return the text that trafilatura takes for the content."""
    import logging

    import trafilatura

    # trafilatura logs what it could not parse; the loss is measured here instead.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    found = trafilatura.extract(html, **FINDER_OPTIONS)
    return found or ""


def _is_boilerplate(block: PageBlock, body: PageBlock) -> bool:
    node = block.node
    tag = node.tag or ""
    if tag == "body" or block.characters > body.characters / 2:
        return False
    attributes = node.attributes
    role = (attributes.get("role") or "").lower()
    if tag == "nav" or role == "navigation":
        return True
    if (tag == "footer" or role == "contentinfo") and not _is_footer_of_content(block):
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
    names = _CAMEL.sub(r"\1-\2", f"{attributes.get('class') or ''} {attributes.get('id') or ''}")
    return bool(_BOILERPLATE_NAME.search(names))


def _is_footer_of_content(block: PageBlock) -> bool:
    """Return True for the notes below an article, as opposed to what ends every page of a site."""
    if block.linked > _FOOTER_LINKED * block.characters:
        return False
    outer = block.node.parent
    while outer is not None and outer.tag not in ("main", "article", "footer"):
        outer = outer.parent
    return outer is not None and outer.tag != "footer"


def _is_link_list(block: PageBlock, core: PageBlock, is_article: bool) -> bool:
    """Return True for a block that only leads to other pages.

    A list of short links in the middle of found text is content, and so is one that is most of the page.
    """
    before = block.before - core.before
    within = min(before, core.found - block.found - before) >= _STRAY
    if within and block.jumps < block.links / 2 and block.linked < _HEADLINE * block.links:
        return False
    return (
        block.links >= (1 if is_article else _MIN_LINKS)
        and not block.headings
        and block.linked >= _LINK_SHARE * block.characters
        and block.found <= _FOUND * block.characters
        and block.characters <= core.characters / 2
        and block.node.tag not in ("td", "tr", "tbody", "body")
    )


def _is_teaser(block: PageBlock, core: PageBlock, is_article: bool) -> bool:
    """Return True for a block of headings that are links to other pages.

    The content finder takes some of them for content. What it found of a block counts less in a page with one subject.
    In any other page, such as one of search results, a block that is mostly other text stays.
    """
    certain = is_article or core.headings == 1
    return (
        block.teasers >= 2
        and (certain or block.linked >= _TEASERS_LINKED * block.characters)
        and not block.headings
        and block.found <= (_TEASERS_FOUND if certain else _FOUND) * block.characters
        and block.found <= core.found / 2
        and block.characters <= core.characters / 2
    )


def _outermost(blocks: Iterable[PageBlock]) -> list[PageBlock]:
    """Remove blocks inside other given blocks; the order is inner before outer."""
    kept: list[PageBlock] = []
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
