"""A scripted source in memory: fails, breaks off or waits on request, and records every call."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

from parquetry import ids
from parquetry.model import Access, Item, Unlisted
from parquetry.sources.base import Place

_THEN = datetime(2031, 3, 1, 9, 30, tzinfo=UTC)
SHELVES: dict[str, ShelfSource] = {}
"""shelves by the host of their URLs: `shelf://<host>`"""


class ShelfSource:
    """A source of documents by path."""

    def __init__(self, **contents: str) -> None:
        self.contents = {path.replace("__", "."): content for path, content in contents.items()}
        self.scan_failures: list[tuple[int, Exception]] = []
        """for each scan: number of items before it breaks off, and the error"""
        self.fetch_failures: dict[str, list[Exception]] = defaultdict(list)
        """errors by path, raised one after another"""
        self.unlisted: list[Unlisted] = []
        self.before_scan: Callable[[], None] = lambda: None
        self.before_fetch: Callable[[str], None] = lambda _: None
        self.scans = 0
        self.fetched: list[str] = []
        self.at_work = self.most_at_work = 0
        self._lock = threading.Lock()

    def scan(self, prefix: str) -> Iterator[Item | Unlisted]:
        self.scans += 1
        self.before_scan()
        left, failure = self.scan_failures.pop(0) if self.scan_failures else (len(self.contents), None)
        for path in sorted(self.contents)[:left]:
            if path.startswith(prefix):
                yield self._item(path)
        yield from self.unlisted
        if failure is not None:
            raise failure

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        with self._lock:
            self.fetched.append(item.path)
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
        try:
            self.before_fetch(item.path)
            with suppress(IndexError):
                raise self.fetch_failures[item.path].pop(0)
            if item.path not in self.contents:
                raise FileNotFoundError(item.path)
            return self._item(item.path), self.contents[item.path].encode()
        finally:
            with self._lock:
                self.at_work -= 1

    def _item(self, path: str) -> Item:
        content = self.contents[path].encode()
        return Item(path, f"shelf://{path}", len(content), ids.content_hash(content), _THEN, Access())


def open_shelf(place: Place) -> ShelfSource:
    """Return the shelf of a URL."""
    return SHELVES[urlsplit(place.uri).netloc]
