"""Polite page fetcher: applies robots.txt and throttling, and interprets responses."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from threading import Event

import httpx

from parquetry.errors import BrokenDocument, TransientError
from parquetry.net.client import GuardedClient, WebResponse
from parquetry.net.host_throttle import HOST_THROTTLE, HostThrottle
from parquetry.net.response_headers import retry_after
from parquetry.net.robots import Robots

AGENT = "Parquetry"
"""name of this program in robots.txt rules"""
_FORBIDDEN = frozenset({401, 402, 403, 407, 451})
_GONE = frozenset({404, 410})
_PASSING = frozenset({408, 425, 429})


class PageFetcher:
    """Fetches pages as far as robots.txt permits, at a rate that their hosts can bear.

    Args:
        client: HTTP client.
        interval: seconds between requests to one host.
        pace: host throttle of the process.
    """

    def __init__(self, client: GuardedClient, interval: float, pace: HostThrottle = HOST_THROTTLE) -> None:
        self._interval, self._pace = interval, pace
        self._stopped = Event()
        self._rules_client = client.with_before(lambda url: pace.wait_out_rest(str(url), self._pause))
        self._client = client.with_before(self._admit)
        self._robots = Robots(self._read_rules, AGENT)

    @contextmanager
    def visit(self, url: str, conditions: Mapping[str, str] | None = None) -> Iterator[WebResponse]:
        """Request a page.

        Args:
            url: URL of the page.
            conditions: headers of a conditional request; with them, the response may be 304.

        Raises:
            FileNotFoundError: the page does not exist.
            DocumentError: it is refused or cannot be read.
            TransientError: it cannot be read at the moment.
        """
        with self._client.get(url, conditions) as answer:
            self._judge(url, answer, conditional=bool(conditions))
            yield answer

    def stop(self) -> None:
        """Send no further requests and cancel those that wait for a turn."""
        self._stopped.set()

    def _admit(self, url: httpx.URL) -> None:
        delay = self._robots.admit(url)
        self._pace.wait(str(url), max(delay, self._interval), self._pause)

    def _pause(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise TransientError("stopped", "nobody waits for it any more")

    def _read_rules(self, url: str) -> tuple[int, bytes]:
        with self._rules_client.get(url) as answer:
            return answer.status, answer.read() if answer.status == 200 else b""

    def _judge(self, url: str, answer: WebResponse, *, conditional: bool) -> None:
        status = answer.status
        if status in (200, 203, 204) or (status == 304 and conditional):
            return
        said = f"{url} answered {status}"
        if status in _GONE:
            raise FileNotFoundError(errno.ENOENT, "is not there", url)
        if status in _FORBIDDEN:
            raise BrokenDocument("forbidden", f"{said}: it may not be read without permission")
        if status in _PASSING or status >= 500:
            seconds = retry_after(answer.headers)
            if seconds is not None:
                self._pace.rest(str(answer.url), seconds)
            limited = status == 429 or seconds is not None
            raise TransientError("rate-limited" if limited else "server-error", said, seconds)
        raise BrokenDocument("unexpected-answer", said)


@cache
def user_agent(contact: str | None) -> str:
    """Return the User-Agent header of the program.

    Args:
        contact: address at which the operator can be reached.
    """
    return f"{AGENT}/{version('parquetry')}" + (f" (+{contact})" if contact else "")
