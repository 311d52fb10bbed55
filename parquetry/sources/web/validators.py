"""Change tokens of pages: detecting changes, and conditional requests."""

from __future__ import annotations

from codecs import BOM_UTF8
from datetime import UTC, datetime, timedelta

import httpx

from parquetry.errors import BrokenDocument
from parquetry.extract.detect import detect
from parquetry.extract.encoding import decode
from parquetry.extract.mail.parser import TolerantMessage
from parquetry.extract.media_types import CSV, HTML, MARKDOWN, PLAIN, XML, is_text

_ETAG, _MODIFIED, _LISTED, _REFUSED, _CONTENT = "etag:", "modified:", "lastmod:", "refused:", "content:"
_SETTLED = timedelta(days=2)
"""age at which a day has ended in every time zone"""
_XHTML = "application/xhtml+xml"
_TEXTS = frozenset({HTML, _XHTML, PLAIN, MARKDOWN, CSV})


def token_of(headers: httpx.Headers) -> str | None:
    """Return the change token from a server's cache validators; None if it sends none."""
    etag, modified = str(headers.get("etag", "")).strip(), str(headers.get("last-modified", "")).strip()
    if etag:
        return _ETAG + etag
    return _MODIFIED + modified if modified else None


def token_of_content(content_hash: str) -> str:
    return _CONTENT + content_hash


def token_of_listing(modified: datetime, *, whole_day: bool) -> str:
    """Return the change token that a sitemap or feed gives.

    A page that changed on a day may change again on that day: until that day is over in every time zone, its token
    differs from the later one, so that the page is read once more.
    """
    open_day = whole_day and datetime.now(UTC) - modified < _SETTLED
    return f"{_LISTED}{modified.isoformat()}{'?' if open_day else ''}"


def token_of_refusal(reason: str) -> str:
    return _REFUSED + reason


def is_listed(token: str) -> bool:
    """Return True if the token comes from a listing and not from the page itself."""
    return token.startswith(_LISTED)


def conditions(token: str | None) -> dict[str, str]:
    """Return the headers of a conditional request (RFC 9110, 13.1)."""
    if token and token.startswith(_ETAG):
        return {"If-None-Match": token.removeprefix(_ETAG)}
    if token and token.startswith(_MODIFIED):
        return {"If-Modified-Since": token.removeprefix(_MODIFIED)}
    return {}


def as_declared(content: bytes, content_type: str | None, filename: str) -> bytes:
    """Apply the declared content type and encoding to a text that does not carry them itself.

    Args:
        content: as sent.
        content_type: header of the response.
        filename: name that extraction will see.

    Returns:
        The text in UTF-8 with a byte order mark if the server declares another encoding; with a doctype in front if the
        server declares a page and the text does not look like one. All other content unchanged.
    """
    message = TolerantMessage()
    message["Content-Type"] = content_type or ""
    declared = message.get_content_type()
    found = detect(content, filename)
    # Content declared as text may be something else.
    if content_type is None or declared not in _TEXTS or not is_text(found):
        return content
    content = _as_utf8(content, message.get_content_charset())
    if declared in (HTML, _XHTML) and found in (PLAIN, XML):
        mark = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
        return mark + b"<!doctype html>" + content.removeprefix(mark)
    return content


def _as_utf8(content: bytes, charset: str | None) -> bytes:
    if not charset or charset in ("utf-8", "utf8"):
        return content
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return content
    try:
        text, encoding = decode(content, charset)
    except BrokenDocument:
        return content
    return content if encoding.startswith("utf") else BOM_UTF8 + text.encode("utf-8")
