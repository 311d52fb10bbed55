"""Web pages: single ones, and those that a list, a sitemap or a feed names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING

from pydantic import Field

from parquetry import ids
from parquetry.errors import BrokenDocument, DocumentError, SettingsError, TransientError
from parquetry.masking import holds_credentials, masked
from parquetry.model import DocumentRow, Item, Unlisted
from parquetry.net.rate_limiter import host_of
from parquetry.settings.base import LONGEST_WAIT, MOST_BYTES, Section
from parquetry.sources.base import Place
from parquetry.sources.options import options_of
from parquetry.sources.paths import within
from parquetry.sources.selection import PAGE_EXCLUDES, Selection
from parquetry.sources.web.listings import Kind, ListedPage, entries_of, kind_of, unpacked
from parquetry.sources.web.names import path_of
from parquetry.sources.web.validators import (
    as_declared,
    conditions,
    is_listed,
    token_of,
    token_of_content,
    token_of_listing,
    token_of_refusal,
)
from parquetry.threads import threads_of

if TYPE_CHECKING:
    import httpx

    from parquetry.net.client import GuardedClient, WebResponse
    from parquetry.net.page_fetcher import PageFetcher

_AT_ONCE = 8
"""concurrent requests; those to one host are throttled"""
_SLICE = 64
_GIVES_UP_AFTER = 3
"""consecutive failures of a host; its other pages are not requested in this listing"""
_KEPT_BYTES = 64 * 1024 * 1024
_READ_AT_ONCE_BYTES = 8 * 1024 * 1024
"""bytes; larger pages are not read while listing if the server sends an entity tag or modification time"""
_LISTING_BYTES = 64 * 1024 * 1024
"""maximum bytes of a listing once unpacked; the sitemap protocol allows 50 MiB"""
_TYPICAL_BYTES = 32 * 1024
"""assumed bytes of an unknown page, for estimates; replaced by its actual size once it is read"""
_NESTED = 2
"""nesting of sitemaps: a sitemap in a sitemap in a sitemap is read, a deeper one is not"""


class WebOptions(Section):
    """`[source.options]` of a web source."""

    kind: Kind | None = Field(
        None, description="What the addresses are: page, sitemap, feed or list; default: as their content says."
    )
    urls: tuple[str, ...] = Field(
        (), examples=[["https://example.org/guide/"]], description="More addresses besides `uri`."
    )
    allow: tuple[str, ...] = Field(
        (),
        examples=[["wiki.intern", "10.1.0.0/16"]],
        description="Hosts and networks, perhaps with a port, that may be asked although they are not public.",
    )
    follow_redirects: bool = Field(True, description="Else a page that redirects is refused.")
    requests_per_second: float = Field(1, gt=0, le=1000, description="To one host at most.")
    max_bytes: int = Field(64 * 1024 * 1024, ge=1, le=MOST_BYTES, description="Of one page, as sent and once unpacked.")
    max_pages: int = Field(50_000, ge=1, le=10_000_000, description="Of the whole source.")
    timeout_seconds: float = Field(120, gt=0, le=LONGEST_WAIT, description="For one page, redirects included.")
    contact: str | None = Field(
        None,
        pattern=r"^[!-~]+$",
        examples=["mailto:web@example.org"],
        description="Told to every server, so that its operators can reach you.",
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """Page named by a listing and not yet requested."""

    path: str
    url: str
    entry: ListedPage


class WebSource:
    """Web pages.

    Each refresh requests a page once, with its known cache validators, so that an unchanged page is not sent again.
    Content that is sent is cached, within limits, for `fetch`.

    Args:
        place: name, access and globs of the source.
        options: options of the web source.
        roots: URLs of pages, or of documents that list pages.
        fetcher: page fetcher.
    """

    def __init__(self, place: Place, options: WebOptions, roots: Sequence[httpx.URL], fetcher: PageFetcher) -> None:
        self._name, self._access, self._options = place.name, place.access, options
        self._roots, self._fetcher = roots, fetcher
        self._selection = Selection(place.include, place.exclude, PAGE_EXCLUDES)
        self._known: Mapping[str, DocumentRow] = {}
        self._lock = Lock()
        self._kept: dict[str, tuple[str, bytes]] = {}
        """path -> change token and content read while listing"""
        self._hashes: dict[str, str] = {}
        """path -> hash of content read while listing"""

    def remember(self, known: Mapping[str, DocumentRow]) -> None:
        """Store the current rows of this source, keyed by path; later requests are conditional on them."""
        self._known = known

    def hash(self, path: str) -> str:
        try:
            return self._hashes[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    # --- list

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        pages: dict[str, _Page] = {}
        listed: set[str] = set()
        strangers: list[Item] = []
        feeds = False
        for root in self._roots:
            found = self._open_root(root)
            if isinstance(found, Unlisted):
                yield found
            elif isinstance(found, Item) and self._is_stranger(found):
                strangers.append(found)
            elif isinstance(found, Item):
                listed.add(found.path)
                yield from self._wanted(found, prefix)
            elif isinstance(found, _Listing):
                feeds |= found.kind == "feed"
                yield from self._gather(found, pages)
        if feeds:
            # A feed names only its latest entries: request the earlier ones to see whether they still exist.
            for path, row in self._known.items():
                page = _named(ListedPage(row.uri, None), row.uri)
                if isinstance(page, _Page):
                    pages.setdefault(path, replace(page, path=path))
        missing = self._known.keys() - pages.keys() - listed
        for item in strangers:
            yield from self._wanted(item, prefix) if not missing else [_not_a_listing(item)]
            listed.add(item.path)
        yield from self._ask_all(
            page
            for page in pages.values()
            if page.path not in listed and within(page.path, prefix) and not self._selection.leaves_out(page.path)
        )

    def _wanted(self, item: Item, prefix: str) -> Iterator[Item]:
        if within(item.path, prefix) and not self._selection.leaves_out(item.path):
            yield item

    def _is_stranger(self, item: Item) -> bool:
        """Return True if an address turned out to be a page without the settings declaring it one."""
        return self._options.kind is None and item.path not in self._known

    def _open_root(self, root: httpx.URL) -> Item | Unlisted | _Listing | None:
        """Read an address of the settings; return None for a page that is gone.

        Raises:
            TransientError: it cannot be read at the moment.
        """
        url, path = str(root), path_of(root)
        known = self._known.get(path)
        page = known is not None or self._options.kind == "page"
        try:
            with self._fetcher.visit(url, conditions(known.etag) if known else None) as answer:
                unchanged = known is not None and token_of(answer.headers) == known.etag
                if self._options.kind == "page" or answer.status == 304 or unchanged:
                    return self._item(path, url, answer)
                content = answer.read()
                listing = unpacked(content, _LISTING_BYTES, url)
                kind = self._options.kind or kind_of(listing)
                if kind == "page":
                    return self._item_read(path, url, answer, content)
                return _Listing(str(answer.url), kind, listing)
        except FileNotFoundError:
            return None if known else Unlisted("", f"{url} is not there; correct its address")
        except DocumentError as error:
            return self._refused(path, url, error) if page else Unlisted("", error.detail)

    def _gather(self, root: _Listing, pages: dict[str, _Page]) -> Iterator[Item | Unlisted]:
        """Collect the pages that a listing and its nested listings name."""
        pending: list[tuple[str, int]] = [(root.url, 0)]
        opened = {root.url}
        while pending:
            url, depth = pending.pop()
            try:
                listing = root if depth == 0 else self._open_listing(url)
                for entry in entries_of(listing.content, listing.kind, listing.url):
                    found = _named(entry, listing.url)
                    if isinstance(found, DocumentError):
                        shown = masked(entry.address)
                        yield self._refused(_shown(shown), shown, found)
                    elif not entry.listing:
                        pages.setdefault(found.path, found)
                    elif depth == _NESTED:
                        yield Unlisted("", f"{found.url} is listed in too many sitemaps, one in the other")
                    elif found.url not in opened:
                        opened.add(found.url)
                        pending.append((found.url, depth + 1))
                    if max(len(pages), len(opened)) > self._options.max_pages:
                        yield Unlisted("", f"{listing.url} names more than {self._options.max_pages} pages (max_pages)")
                        return
            except (DocumentError, FileNotFoundError) as error:
                yield Unlisted("", f"{url}: {error}")

    def _open_listing(self, url: str) -> _Listing:
        with self._fetcher.visit(url) as answer:
            return _Listing(url, "sitemap", unpacked(answer.read(), _LISTING_BYTES, url))

    # --- request

    def _ask_all(self, pages: Iterator[_Page]) -> Iterator[Item | Unlisted]:
        failures: Counter[str] = Counter()
        with threads_of(_AT_ONCE, "web") as threads, ExitStack() as unfinished:
            # On an interrupt or an early end the threads must not wait for their turns.
            unfinished.callback(self._fetcher.stop)
            while some := list(islice(pages, _SLICE)):
                for found in threads.map(lambda page: self._ask(page, failures), some):
                    if found is not None:
                        yield found
            unfinished.pop_all()

    def _ask(self, page: _Page, failures: Counter[str]) -> Item | Unlisted | None:
        """Request one page for the listing; return None if it is gone or its host has been given up."""
        known, entry, host = self._known.get(page.path), page.entry, host_of(page.url)
        if entry.modified is not None:
            token = token_of_listing(entry.modified, whole_day=entry.whole_day)
            size = known.size if known else _TYPICAL_BYTES
            return Item(page.path, page.url, size, token, entry.modified, self._access)
        if failures[host] >= _GIVES_UP_AFTER:
            return None
        try:
            with self._fetcher.visit(page.url, conditions(known.etag) if known else None) as answer:
                found = self._item(page.path, page.url, answer)
        except FileNotFoundError:
            found = None
        except DocumentError as error:
            found = self._refused(page.path, page.url, error)
        except TransientError as error:
            with self._lock:
                failures[host] += 1
                given_up = "; its other pages were not asked" if failures[host] == _GIVES_UP_AFTER else ""
            return Unlisted(page.path, f"{error.detail}{given_up}")
        failures[host] = 0
        return found

    def _item(self, path: str, url: str, answer: WebResponse) -> Item:
        """Return the item of a page that answered; read its content if the headers do not suffice."""
        known, token, size = self._known.get(path), token_of(answer.headers), answer.size
        if known and (answer.status == 304 or token == known.etag):
            return Item(path, url, known.size, known.etag, known.modified_at, self._access)
        if token and size is not None and size > _READ_AT_ONCE_BYTES:
            return Item(path, url, size, token, _modified(answer), self._access)
        return self._item_read(path, url, answer, answer.read())

    def _item_read(self, path: str, url: str, answer: WebResponse, content: bytes) -> Item:
        content = as_declared(content, answer.headers.get("content-type"), path.rpartition("/")[2])
        digest = ids.content_hash(content)
        token = token_of(answer.headers) or token_of_content(digest)
        known = self._known.get(path)
        with self._lock:
            self._hashes[path] = digest
            room = _KEPT_BYTES - sum(len(kept) for _, kept in self._kept.values())
            if len(content) <= room and not (known and known.content_hash == digest):
                self._kept[path] = token, content
        return Item(path, url, len(content), token, _modified(answer), self._access)

    def _refused(self, path: str, url: str, error: DocumentError) -> Item:
        """Return an item for a refused page, so that it is counted and its published version is kept."""
        return Item(path, url, 0, token_of_refusal(error.reason), datetime.now(UTC), self._access)

    # --- read

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one page, unless it was cached while listing."""
        with self._lock:
            token, content = self._kept.pop(item.path, ("", b""))
        if token == item.etag:
            return replace(item, size=len(content)), content
        if holds_credentials(item.uri):
            raise _with_credentials()
        with self._fetcher.visit(item.uri) as answer:
            content = as_declared(answer.read(), answer.headers.get("content-type"), item.path.rpartition("/")[2])
            token = token_of(answer.headers) or token_of_content(ids.content_hash(content))
            modified = item.modified_at if is_listed(item.etag) else _modified(answer)
        if is_listed(item.etag):
            token = item.etag
        return replace(item, size=len(content), etag=token, modified_at=modified), content


@dataclass(frozen=True, slots=True)
class _Listing:
    """Document that names pages."""

    url: str
    """base URL of its entries"""
    kind: Kind
    content: bytes


def _named(entry: ListedPage, base: str) -> _Page | DocumentError:
    from parquetry.net.client import joined

    try:
        url = _without_credentials(joined(base, entry.address))
    except DocumentError as error:
        return error
    return _Page(path_of(url), str(url), entry)


def _without_credentials(url: httpx.URL) -> httpx.URL:
    if holds_credentials(str(url)):
        raise _with_credentials()
    return url


def _with_credentials() -> BrokenDocument:
    return BrokenDocument("bad-url", "its URL holds credentials, which would be stored and shown")


def _shown(address: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in address[:200])


def _not_a_listing(item: Item) -> Unlisted:
    return Unlisted(
        "", f'{item.uri} is a page, where a list of pages was; if that is meant, set kind = "page" in [source.options]'
    )


def _modified(answer: WebResponse) -> datetime:
    from parquetry.net.response_headers import moment_of

    return moment_of(answer.headers.get("last-modified")) or datetime.now(UTC)


def open_web(place: Place, client: GuardedClient | None = None) -> WebSource:
    """Open the pages at a URL, or those that it names.

    Args:
        place: place of the source.
        client: client to use in place of one built from the options.

    Raises:
        SettingsError: invalid options, or an address that is invalid or forbidden.
    """
    from parquetry.net.client import GuardedClient, readable_url
    from parquetry.net.page_fetcher import PageFetcher, user_agent
    from parquetry.net.ssrf import parse_allowed

    options = options_of(place, WebOptions)
    try:
        client = client or GuardedClient(
            parse_allowed(options.allow),
            user_agent=user_agent(options.contact),
            max_bytes=options.max_bytes,
            seconds=options.timeout_seconds,
            follow_redirects=options.follow_redirects,
        )
        roots = [_without_credentials(readable_url(root)) for root in (place.uri, *options.urls)]
        for root in roots:
            client.check(root)
    except (DocumentError, SettingsError) as error:
        detail = error.detail if isinstance(error, DocumentError) else str(error)
        raise SettingsError(f"source {place.name}: {detail}") from error
    return WebSource(place, options, roots, PageFetcher(client, 1 / options.requests_per_second))
