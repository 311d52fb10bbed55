"""Documents that list others: sitemaps, feeds and plain lists of URLs."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from parquetry.decompress import GZIP_MAGIC, inflate
from parquetry.sources.web.xml_records import Record, records, root_of

Kind = Literal["page", "sitemap", "feed", "list"]

_ROOTS: dict[str, Kind] = {
    "urlset": "sitemap",
    "sitemapindex": "sitemap",
    "rss": "feed",
    "feed": "feed",
    "RDF": "feed",
}
_FIELDS = frozenset({"loc", "lastmod", "link", "guid", "updated"})
_MAX_LIST_LINE = 8192
_LINE = re.compile(rb"[^\r\n]+")


@dataclass(frozen=True, slots=True)
class ListedPage:
    """Page or nested sitemap named by a listing."""

    address: str
    """URL as written; may be relative to the listing"""
    modified: datetime | None
    """UTC; time of the last change according to the listing"""
    whole_day: bool = False
    """True if the listing gives only the day"""
    listing: bool = False
    """True for a nested sitemap"""


def unpacked(content: bytes, max_bytes: int, what: str) -> bytes:
    """Return a listing with its gzip compression, if any, removed.

    Raises:
        DocumentError: it is damaged or too large.
    """
    return b"".join(inflate([content], max_bytes, what)) if content.startswith(GZIP_MAGIC) else content


def kind_of(content: bytes) -> Kind:
    """Return the kind of a document, judged by its content; anything that lists nothing is a page."""
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return _ROOTS.get(root_of(content), "page")
    return "list" if start.startswith((b"http://", b"https://", b"#")) and _is_list(start) else "page"


def _is_list(content: bytes) -> bool:
    found = False
    for line in _lines(content):
        found = True
        if not line.startswith((b"http://", b"https://")) or len(line.split()) != 1 or len(line) > _MAX_LIST_LINE:
            return False
    return found


def _lines(content: bytes) -> Iterator[bytes]:
    """Yield the lines of a list that are neither empty nor comments."""
    for match in _LINE.finditer(content):
        line = match.group().strip()
        if line and not line.startswith(b"#"):
            yield line


def entries_of(content: bytes, kind: Kind, what: str) -> Iterator[ListedPage]:
    """Yield the entries of a listing, in its order.

    Args:
        content: unpacked content.
        kind: kind of listing.
        what: its URL, for messages.

    Raises:
        BrokenDocument: `damaged`, `too-deep` or `too-many-parts`; entries yielded before are valid.
    """
    if kind == "list":
        for line in _lines(content.removeprefix(BOM_UTF8)):
            yield ListedPage(line.decode("utf-8", "replace"), None)
        return
    names = ("url", "sitemap") if kind == "sitemap" else ("item", "entry")
    for record in records(content, names, _FIELDS, f"{what} is not a whole {kind}"):
        entry = _of_sitemap(record) if kind == "sitemap" else _of_feed(record)
        if entry is not None:
            yield entry


def _of_sitemap(record: Record) -> ListedPage | None:
    address = record.text("loc")
    if not address:
        return None
    modified, whole_day = _moment(record.text("lastmod"))
    return ListedPage(address, modified, whole_day, record.name == "sitemap")


def _of_feed(record: Record) -> ListedPage | None:
    address = ""
    for field in record.fields:
        if field.name == "link" and field.attributes.get("rel", "alternate") == "alternate":
            address = field.attributes.get("href", "").strip() or field.text
            if address:
                break
    else:
        guid = next((field for field in record.fields if field.name == "guid"), None)
        if guid is not None and guid.attributes.get("isPermaLink", "true") == "true":
            address = guid.text
    if not address:
        return None
    # The date of an RSS item is its publication date; only Atom records when an entry changed.
    modified, whole_day = _moment(record.text("updated"))
    return ListedPage(address, modified, whole_day)


def _moment(text: str) -> tuple[datetime | None, bool]:
    """Parse a W3C date; a date without a day is ignored."""
    try:
        moment = datetime.fromisoformat(text)
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None, False
    return utc, len(text) <= len("2026-01-31")
