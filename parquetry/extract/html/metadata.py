"""Metadata from the head of a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from parquetry.extract.html.nodes import running_text
from parquetry.extract.titles import useful_title

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

    from parquetry.model import Scalar

_LANGUAGE = re.compile(r"^[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*$")
_MAX_CHARACTERS = 1000

_FIELDS = {
    "author": ("author", "article:author", "dc.creator", "dcterms.creator", "citation_author", "parsely-author"),
    "published": (
        "article:published_time", "datepublished", "date", "dc.date", "dcterms.date", "dcterms.created",
        "citation_publication_date", "pubdate", "publish-date", "og:published_time",
    ),
    "modified": ("article:modified_time", "datemodified", "dcterms.modified", "last-modified", "og:updated_time"),
    "description": ("description", "og:description", "dc.description", "twitter:description"),
    "keywords": ("keywords", "news_keywords"),
    "site": ("og:site_name", "application-name"),
    "language": ("content-language", "dc.language", "og:locale"),
}  # fmt: skip
_LINKED_DATA = {"author": "author", "datePublished": "published", "dateModified": "modified", "inLanguage": "language"}


def page_title(page: LexborHTMLParser) -> str | None:
    """Return the title of a page: its `title` element, its title for social networks, or its first main heading.

    The first of these counts that a program did not put there (`Untitled Document`).
    """
    # An SVG image may also contain a `title`.
    for selector in ("head > title", "body > title"):
        node = page.css_first(selector)
        if node is not None and (title := useful_title(node.text())):
            return title
    node = page.css_first('meta[property="og:title"]')
    if node is not None and (title := useful_title(node.attributes.get("content"))):
        return title
    node = page.css_first("h1")
    return useful_title(running_text(node)) if node is not None else None


def page_metadata(page: LexborHTMLParser) -> dict[str, Scalar]:
    """Return the language, author, dates, description, keywords and address that a page declares."""
    told = dict(_meta_elements(page))
    metadata: dict[str, Scalar] = {}
    root = page.css_first("html")
    language = (root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root is not None else ""
    if _LANGUAGE.match(language.strip()):
        metadata["language"] = language.strip()
    for field, names in _FIELDS.items():
        value = next((told[name] for name in names if told.get(name) and not _is_address(field, told[name])), None)
        if value and (field != "language" or _LANGUAGE.match(value)):
            metadata.setdefault(field, value)
    for field, value in _linked_data(page):
        metadata.setdefault(field, value)
    if "published" not in metadata and (node := page.css_first("article time[datetime], main time[datetime]")):
        metadata["published"] = (node.attributes.get("datetime") or "").strip()
    for selector, attribute in (('link[rel~="canonical"]', "href"), ('meta[property="og:url"]', "content")):
        node = page.css_first(selector)
        address = (node.attributes.get(attribute) or "").strip() if node is not None else ""
        if address.startswith(("http://", "https://")):
            metadata.setdefault("url", address[:_MAX_CHARACTERS])
    return {field: value for field, value in metadata.items() if value}


def _is_address(field: str, value: str) -> bool:
    return field == "author" and value.startswith(("http://", "https://"))


def _meta_elements(page: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for node in page.css("meta"):
        attributes = node.attributes
        name = attributes.get("name") or attributes.get("property") or attributes.get("itemprop")
        name = (name or attributes.get("http-equiv") or "").strip().lower()
        value = " ".join((attributes.get("content") or "").split())[:_MAX_CHARACTERS]
        if name and value and name not in seen:
            seen.add(name)
            yield name, value


def _linked_data(page: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    for node in page.css('script[type="application/ld+json"]')[:20]:
        try:
            data = json.loads(node.text())
        except (ValueError, RecursionError):
            continue
        for item in _items(data):
            for name, field in _LINKED_DATA.items():
                value = _names(item.get(name))
                if value and not _is_address(field, value):
                    yield field, value[:_MAX_CHARACTERS]


def _items(data: Any) -> Iterator[dict[str, Any]]:
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, dict):
            yield item
            graph = item.get("@graph")
            yield from (inner for inner in graph if isinstance(inner, dict)) if isinstance(graph, list) else ()


def _names(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return _names(value.get("name"))
    if isinstance(value, list):
        return ", ".join(filter(None, map(_names, value)))
    return ""
