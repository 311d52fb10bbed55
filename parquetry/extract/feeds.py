"""RSS and Atom feeds, with each item below its title."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import TYPE_CHECKING

from parquetry.extract.builder import TextBuilder
from parquetry.extract.html.reader import add_html
from parquetry.extract.xml.names import local_name, text_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_CONTENTS = ("encoded", "content")
"""elements that hold an item's text, the fullest first"""
_SUMMARIES = ("description", "summary", "subtitle")
_ABOUT = {
    "creator": "Author",
    "author": "Author",
    "contributor": "Author",
    "pubDate": "Published",
    "published": "Published",
    "issued": "Published",
    "date": "Published",
    "updated": "Updated",
    "modified": "Updated",
    "category": "Categories",
    "subject": "Categories",
    "duration": "Duration",
}
"""name of an element -> its label; of dates, the first counts"""
_LISTED = frozenset({"Author", "Categories"})
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_WORD = re.compile(r"\w+")
_COMPARED = 100
"""characters of the words of a summary that the content repeats, if the summary is its beginning"""


def is_feed(root: Element) -> bool:
    return local_name(root) in ("rss", "feed", "RDF") and any(True for _ in _items(root))


def add_feed(builder: TextBuilder, root: Element) -> str | None:
    """Append a feed: its title and description, then each item as a section.

    Returns:
        The title of the feed.
    """
    channel = next((child for child in root if local_name(child) == "channel"), root)
    title = _title(channel)
    if title:
        builder.heading(1, title)
    _add_body(builder, _first(channel, _SUMMARIES))
    for item in _items(root):
        about = _about(item)
        builder.heading(2, _title(item) or about.get("Published") or "Untitled")
        builder.text("\n".join(f"{label}: {value}" for label, value in about.items()))
        content, summary = _first(item, _CONTENTS), _first(item, _SUMMARIES)
        if content is not None and summary is not None and not _begins(content, summary):
            _add_body(builder, summary)
        _add_body(builder, content if content is not None else summary)
    return title or None


def _items(root: Element) -> list[Element]:
    # RSS 1.0 has its items beside the channel, RSS 2.0 inside it.
    channels = [child for child in root if local_name(child) == "channel"]
    return [child for parent in (*channels, root) for child in parent if local_name(child) in ("item", "entry")]


def _about(item: Element) -> dict[str, str]:
    """Return label and value of each thing told about an item, each value of a list once."""
    found: dict[str, dict[str, None]] = {}
    for child in item:
        label = _ABOUT.get(local_name(child))
        if label and (value := _value(child)):
            values = found.setdefault(label, {})
            if label in _LISTED or not values:
                values[value] = None
    about = {label: ", ".join(values) for label, values in found.items()}
    for label, address in _links(item):
        about.setdefault(label, address)
    return about


def _value(element: Element) -> str:
    name = next((text_of(child) for child in element if local_name(child) == "name"), "")
    return name or text_of(element) or element.get("label") or element.get("term") or element.get("text") or ""


def _links(item: Element) -> Iterator[tuple[str, str]]:
    """Yield the address of an item, and that of a file that belongs to it."""
    for child in item:
        name, kind = local_name(child), child.get("rel", "alternate")
        address = child.get("href") or child.get("url") or (text_of(child) if name == "link" else "")
        if address and name == "link" and kind == "alternate":
            yield "Link", address
        elif address and (name == "enclosure" or (name == "link" and kind == "enclosure")):
            yield "File", address


def _title(element: Element) -> str:
    """Return the title, which may be HTML, as text."""
    found = next((child for child in element if local_name(child) == "title"), None)
    if found is None:
        return ""
    text = text_of(found)
    return text if found.get("type") == "text" else " ".join(unescape(_TAG.sub("", text)).split())


def _first(item: Element, names: tuple[str, ...]) -> Element | None:
    """Return the first of several elements with text, also of those of a group of media."""
    groups = [child for child in item if local_name(child) == "group"]
    for name in names:
        for parent in (item, *groups):
            for child in parent:
                if local_name(child) == name and any(text.strip() for text in child.itertext()):
                    return child
    return None


def _begins(content: Element, summary: Element) -> bool:
    """Return True if a content has the beginning of a summary in it."""
    return _words(summary)[:_COMPARED].rstrip() in _words(content)


def _words(body: Element) -> str:
    builder = TextBuilder()
    _add_body(builder, body)
    text = builder.build(title=None, metadata={}, media_type="", extractor="").text
    return " ".join(_WORD.findall(text.lower()))


def _add_body(builder: TextBuilder, body: Element | None) -> None:
    """Append a body: HTML, as escaped text or as elements, or plain text."""
    if body is None:
        return
    text = body.text or ""
    if len(body):
        from xml.etree.ElementTree import tostring

        add_html(builder, tostring(body, encoding="unicode").replace("html:", ""), main_only=False)
    elif ("<" in text or "&" in text) and body.get("type") not in ("text", "text/plain"):
        add_html(builder, text, main_only=False)
    else:
        builder.text(text)
