"""Rules of `robots.txt`, requested once per host of a source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from threading import Lock
from typing import Protocol

import httpx

from parquetry.errors import DocumentError, SkippedDocument, TransientError

_MAX_DELAY_SECONDS = 30.0
_MAX_BYTES = 500 * 1024
"""bytes read of a file; RFC 9309, 2.5 requires at least this. Every page is compared with every rule."""


class _Rules(Protocol):
    """Part of protego's parser used here."""

    def can_fetch(self, url: str, user_agent: str) -> bool: ...

    def crawl_delay(self, user_agent: str) -> float | None: ...


class Robots:
    """Rules of hosts.

    Args:
        read: URL -> status and content of the file there.
        agent: name of this program in the rules.
    """

    def __init__(self, read: Callable[[str], tuple[int, bytes]], agent: str) -> None:
        self._read, self._agent = read, agent
        self._rules: dict[str, _Rules] = {}
        self._locks: dict[str, Lock] = defaultdict(Lock)

    def admit(self, url: httpx.URL) -> float:
        """Check one page against the rules of its host.

        Returns:
            Seconds between requests that the host asks for; 0 if it specifies none.

        Raises:
            SkippedDocument: `robots`, programs may not read the page.
            TransientError: the rules could not be read; until then no page of the host is read (RFC 9309).
        """
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        with self._locks[origin]:
            rules = self._rules.get(origin)
            if rules is None:
                rules = self._rules[origin] = self._ask(origin)
        if not rules.can_fetch(str(url), self._agent):
            raise SkippedDocument("robots", f"{origin}/robots.txt does not allow {url} to be read by programs")
        return min(float(rules.crawl_delay(self._agent) or 0), _MAX_DELAY_SECONDS)

    def _ask(self, origin: str) -> _Rules:
        from protego import Protego

        address = f"{origin}/robots.txt"
        try:
            status, content = self._read(address)
        except DocumentError as error:
            if error.reason == "forbidden-address":
                raise
            raise TransientError("robots", f"{address} cannot be read ({error.detail}); pages there wait") from error
        if status == 429 or status >= 500:
            raise TransientError("robots", f"{address} answered {status}; pages there wait until it can be read")
        # Any other status except success means that there are no rules.
        rules: _Rules = Protego.parse(content[:_MAX_BYTES].decode("utf-8", "replace") if status == 200 else "")
        return rules
