"""Fetching of single web pages and videos, to be kept as uploads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from parquetry.errors import BrokenDocument, SettingsError, SkippedDocument
from parquetry.masking import holds_credentials
from parquetry.settings.sections import Settings
from parquetry.sources.providers import kind_of

if TYPE_CHECKING:
    import httpx

_SECONDS = 120.0
"""longest time for one page, redirects included"""
_INTERVAL = 1.0
"""seconds between two requests to one host"""


@dataclass(frozen=True, slots=True)
class Imported:
    """A page or the captions of a video, as fetched."""

    content: bytes
    filename: str
    content_type: str | None
    title: str | None
    """title of the video; that of a page is in its content"""
    kind: Literal["url", "youtube"]
    url: str
    """address as it is asked: the canonical one of a video"""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """`source: youtube` for a video"""


def fetch_url(url: str, settings: Settings) -> Imported:
    """Fetch a web page, or the captions of a YouTube video.

    Only public addresses are asked, and those that `[uploads] allow` names; that holds for every redirect, too, and is
    checked before any connection. robots.txt is respected.

    Args:
        url: address, http or https.
        settings: `[uploads] allow`, and the size limit of `[serve]`.

    Raises:
        DocumentError: it may not or cannot be fetched: `bad-url`, `forbidden-address`, `not-found`, `no-captions`, ...
        TransientError: it cannot be fetched at the moment.
    """
    from parquetry.net.client import readable_url

    address = readable_url(url)
    if holds_credentials(str(address)):
        raise BrokenDocument("bad-url", "its URL holds credentials, which would be stored and shown")
    return _video(str(address)) if kind_of(str(address)) == "youtube" else _page(address, settings)


def _page(url: httpx.URL, settings: Settings) -> Imported:
    from parquetry.net.client import GuardedClient
    from parquetry.net.page_fetcher import PageFetcher, user_agent
    from parquetry.net.ssrf import parse_allowed
    from parquetry.sources.web.names import path_of
    from parquetry.sources.web.validators import as_declared

    most = min(settings.serve.max_document_bytes, settings.extraction.max_bytes)
    try:
        allowed = parse_allowed(settings.uploads.allow)
    except SettingsError as error:
        raise SettingsError(f"[uploads] allow: {error}") from error
    client = GuardedClient(allowed, user_agent=user_agent(None), max_bytes=most, seconds=_SECONDS)
    filename = path_of(url).rpartition("/")[2]
    try:
        client.check(url)
        with PageFetcher(client, _INTERVAL).visit(str(url)) as answer:
            declared = answer.headers.get("content-type")
            content = as_declared(answer.read(), declared, filename)
    except BrokenDocument as error:
        # The client speaks of the option of a source.
        detail = error.detail.replace("allow in [source.options]", "allow in [uploads]")
        raise BrokenDocument(error.reason, detail) from error
    except FileNotFoundError as error:
        raise BrokenDocument("not-found", f"{url} is not there; correct the address") from error
    if not content:
        raise SkippedDocument("empty", f"{url} answered without content")
    content_type = (declared or "").partition(";")[0].strip().lower() or None
    return Imported(content, filename, content_type, None, "url", str(url))


def _video(url: str) -> Imported:
    from parquetry.extract.front_matter import split_front_matter
    from parquetry.sources.youtube.source import captions_of, named_by

    video, playlist = named_by(url)
    if playlist:
        raise SkippedDocument("playlist", f"{url} is a list of videos; hand them in one by one, or add it as a source")
    if not video:
        raise SkippedDocument("not-a-video", f"{url} is no video; give its address, as youtube.com/watch?v=...")
    try:
        canonical, content = captions_of(video)
    except BrokenDocument as error:
        if error.reason != "no-captions":
            raise
        what = f"{error.detail}; hand in a transcript of it as text"
        raise BrokenDocument(error.reason, what) from error
    title = split_front_matter(content.decode())[1].get("title")
    named = title if isinstance(title, str) else None
    return Imported(content, f"{video}.md", "text/markdown", named, "youtube", canonical, {"source": "youtube"})
