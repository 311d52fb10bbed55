"""RSS and Atom feeds, with each item below its title."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquetry.extract.html.reader import add_html

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from parquetry.extract.builder import TextBuilder

_BODIES = ("encoded", "content", "description", "summary")
"""elements that hold an item's text, the fullest first"""
_ABOUT = {
    "creator": "Author",
    "author": "Author",
    "pubDate": "Published",
    "published": "Published",
    "updated": "Updated",
}


def is_feed(root: Element) -> bool:
    return _name(root) in ("rss", "feed", "RDF") and any(True for _ in _items(root))


def add_feed(builder: TextBuilder, root: Element) -> str | None:
    """Append a feed: its title and description, then each item as a section.

    Returns:
        The title of the feed.
    """
    channel = next((child for child in root if _name(child) == "channel"), root)
    title = _text(_child(channel, "title"))
    if title:
        builder.heading(1, title)
    about = _child(channel, "description")
    _add_body(builder, about if about is not None else _child(channel, "subtitle"))
    for item in _items(root):
        builder.heading(2, _text(_child(item, "title")) or "Untitled")
        lines: dict[str, str] = {}
        for child in item:
            label = _ABOUT.get(_name(child))
            if label and (value := _text(_child(child, "name")) or _text(child)):
                lines.setdefault(label, f"{label}: {value}")
        link = _child(item, "link")
        if link is not None and (address := (link.get("href") or _text(link))):
            lines["Link"] = f"Link: {address}"
        builder.text("\n".join(lines.values()))
        bodies = (_child(item, name) for name in _BODIES)
        _add_body(builder, next((body for body in bodies if body is not None and _has_text(body)), None))
    return title or None


def _items(root: Element) -> list[Element]:
    # RSS 1.0 has its items beside the channel, RSS 2.0 inside it.
    channels = [child for child in root if _name(child) == "channel"]
    return [child for parent in (*channels, root) for child in parent if _is_item(child)]


def _is_item(element: Element) -> bool:
    return _name(element) in ("item", "entry")


def _add_body(builder: TextBuilder, body: Element | None) -> None:
    """Append a body: HTML, as escaped text or as elements."""
    if body is None:
        return
    if len(body):
        from xml.etree.ElementTree import tostring

        add_html(builder, tostring(body, encoding="unicode").replace("html:", ""), main_only=False)
    elif "<" in (body.text or "") or "&" in (body.text or ""):
        add_html(builder, body.text or "", main_only=False)
    else:
        builder.text(body.text or "")


def _has_text(element: Element) -> bool:
    return bool("".join(element.itertext()).strip())


def _child(element: Element, name: str) -> Element | None:
    return next((child for child in element if _name(child) == name), None)


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _text(element: Element | None) -> str:
    return " ".join("".join(element.itertext()).split()) if element is not None else ""
