"""Change tokens of pages: what tells that one is not what it was, and how to ask whether it still is."""

from __future__ import annotations

from codecs import BOM_UTF8
from datetime import UTC, datetime, timedelta
from email.message import Message

import httpx

from knowledge.errors import BrokenDocument
from knowledge.extract.detect import detect
from knowledge.extract.encoding import decode
from knowledge.extract.media_types import is_text

_ETAG, _MODIFIED, _LISTED, _REFUSED, _CONTENT = "etag:", "modified:", "lastmod:", "refused:", "content:"
_SETTLED = timedelta(days=2)
"""after that, a day is over wherever on Earth it was written down"""
_TEXTS = frozenset({"text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/csv"})


def token_of(headers: httpx.Headers) -> str | None:
    """The change token that a server gives; None if it gives none."""
    etag, modified = str(headers.get("etag", "")).strip(), str(headers.get("last-modified", "")).strip()
    if etag:
        return _ETAG + etag
    return _MODIFIED + modified if modified else None


def token_of_content(content_hash: str) -> str:
    return _CONTENT + content_hash


def token_of_listing(modified: datetime, *, whole_day: bool) -> str:
    """The change token that a sitemap or feed gives.

    A page that changed on a day may change again on that day: until the day is surely over, its token is another one
    than afterwards, so that it is read once more.
    """
    open_day = whole_day and datetime.now(UTC) - modified < _SETTLED
    return f"{_LISTED}{modified.isoformat()}{'?' if open_day else ''}"


def token_of_refusal(reason: str) -> str:
    return _REFUSED + reason


def is_listed(token: str) -> bool:
    """Whether a listing gave this token, and not the page itself."""
    return token.startswith(_LISTED)


def conditions(token: str | None) -> dict[str, str]:
    """Headers that ask for a page only if it is not what it was (RFC 9110, 13.1)."""
    if token and token.startswith(_ETAG):
        return {"If-None-Match": token.removeprefix(_ETAG)}
    if token and token.startswith(_MODIFIED):
        return {"If-Modified-Since": token.removeprefix(_MODIFIED)}
    return {}


def as_declared(content: bytes, content_type: str | None) -> bytes:
    """A text in UTF-8 if the server says that it is in another encoding, which the text itself need not tell."""
    message = Message()
    message["Content-Type"] = content_type or ""
    charset = message.get_content_charset()
    if not charset or charset in ("utf-8", "utf8") or message.get_content_type() not in _TEXTS:
        return content
    if not is_text(detect(content, "")):
        # What is announced as text need be none.
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
