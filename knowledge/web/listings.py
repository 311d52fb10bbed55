"""Documents that list others: sitemaps, feeds and plain lists of URLs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Literal

from knowledge.errors import BrokenDocument
from knowledge.web.inflate import GZIP_MAGIC, inflate

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Kind = Literal["page", "sitemap", "feed", "list"]

_ROOTS: dict[str, Kind] = {
    "urlset": "sitemap",
    "sitemapindex": "sitemap",
    "rss": "feed",
    "feed": "feed",
    "RDF": "feed",
}
_MAX_LIST_LINE = 8192


@dataclass(frozen=True, slots=True)
class Entry:
    """A page, or a further sitemap, as a listing names it."""

    address: str
    """as it is written, perhaps relative to the listing"""
    modified: datetime | None
    """UTC, when the listing says that it last changed"""
    whole_day: bool = False
    """the listing names only the day"""
    listing: bool = False
    """a further sitemap"""


def unpacked(content: bytes, max_bytes: int, what: str) -> bytes:
    """A listing without the gzip that it may be kept in.

    Raises:
        DocumentError: it is damaged or too large.
    """
    return b"".join(inflate([content], max_bytes, what)) if content.startswith(GZIP_MAGIC) else content


def kind_of(content: bytes) -> Kind:
    """What a document is, by its content; anything that lists nothing is a page."""
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return _ROOTS.get(_root(content), "page")
    return "list" if start.startswith((b"http://", b"https://", b"#")) and _is_list(start) else "page"


def _root(content: bytes) -> str:
    import defusedxml.ElementTree as ElementTree
    from defusedxml import DefusedXmlException

    try:
        for _, element in ElementTree.iterparse(BytesIO(content), events=("start",)):
            return _name(element)
    except (ElementTree.ParseError, DefusedXmlException, ValueError, LookupError):
        return ""
    return ""


def _is_list(content: bytes) -> bool:
    lines = [line.strip() for line in content.splitlines()]
    wanted = [line for line in lines if line and not line.startswith(b"#")]
    return bool(wanted) and all(
        line.startswith((b"http://", b"https://")) and len(line.split()) == 1 and len(line) <= _MAX_LIST_LINE
        for line in wanted
    )


def entries_of(content: bytes, kind: Kind, what: str) -> Iterator[Entry]:
    """What a listing names, in its order.

    Args:
        content: unpacked.
        kind: of listing.
        what: its URL, for messages.

    Raises:
        BrokenDocument: `damaged`; what was named before is good.
    """
    if kind == "list":
        for line in content.decode("utf-8-sig", "replace").splitlines():
            if line.strip() and not line.strip().startswith("#"):
                yield Entry(line.strip(), None)
        return
    import defusedxml.ElementTree as ElementTree
    from defusedxml import DefusedXmlException

    try:
        for _, element in ElementTree.iterparse(BytesIO(content), events=("end",)):
            name = _name(element)
            if name in ("url", "sitemap") and kind == "sitemap":
                yield from _of_sitemap(element, listing=name == "sitemap")
                element.clear()
            elif name in ("item", "entry") and kind == "feed":
                yield from _of_feed(element)
                element.clear()
    except (ElementTree.ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise BrokenDocument(
            "damaged", f"{what} is not a whole {kind}: {str(error) or type(error).__name__}"
        ) from error


def _of_sitemap(element: Element, *, listing: bool) -> Iterator[Entry]:
    address = _text(element, "loc")
    if address:
        modified, whole_day = _moment(_text(element, "lastmod"))
        yield Entry(address, modified, whole_day, listing)


def _of_feed(element: Element) -> Iterator[Entry]:
    address = ""
    for child in element:
        if _name(child) != "link" or child.get("rel", "alternate") != "alternate":
            continue
        address = (child.get("href") or child.text or "").strip()
        if address:
            break
    else:
        guid = next((child for child in element if _name(child) == "guid"), None)
        if guid is not None and guid.get("isPermaLink", "true") == "true":
            address = (guid.text or "").strip()
    if address:
        # The date of an RSS item is that of its publication; only Atom tells when an entry changed.
        modified, whole_day = _moment(_text(element, "updated"))
        yield Entry(address, modified, whole_day)


def _text(element: Element, name: str) -> str:
    return next(((child.text or "").strip() for child in element if _name(child) == name), "")


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _moment(text: str) -> tuple[datetime | None, bool]:
    """A date of the W3C's form; one that names no day is no use."""
    try:
        moment = datetime.fromisoformat(text)
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None, False
    return utc, len(text) <= len("2026-01-31")
