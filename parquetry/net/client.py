"""HTTP client for addresses that others may have chosen; it never connects to a forbidden address.

Every server-side fetch of a page uses it. A host is resolved once, refused if any of its addresses is forbidden, and
connected to at exactly the checked address; the same applies to every redirect. Time, bytes on the wire and unpacked
bytes are limited for the exchange as a whole.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cache
from typing import Any, cast

import httpcore
import httpx

from parquetry.decompress import inflate
from parquetry.errors import BrokenDocument, SkippedDocument, TransientError, first_line
from parquetry.masking import holds_credentials
from parquetry.net.budget import Budget, BudgetedStream
from parquetry.net.ssrf import Address, Allowed, literal, refusal

Resolve = Callable[[str, int], Sequence[Address]]
"""host and port -> all addresses; raises OSError"""
Dial = Callable[[Address, int, float], httpcore.NetworkStream]
"""address, port and timeout in seconds -> a connection"""
Before = Callable[[httpx.URL], None]
"""called before each request, redirects included; may wait, or raise to refuse it"""

_SCHEMES = {"http": 80, "https": 443}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5
_MAX_URL_CHARACTERS = 8192
_MAX_ADDRESSES_TRIED = 3
_SILENCE_SECONDS = 20.0
"""longest wait in seconds for a connection or for the next bytes"""
_HEADER_BYTES = 256 * 1024
"""bytes for all headers of an exchange, beyond `max_bytes` for the body; those of one response may take 100 KiB"""


def resolve_by_system(host: str, port: int) -> list[Address]:
    """Resolve a host to all its addresses through the operating system."""
    found = [literal(str(entry[4][0])) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    return list(dict.fromkeys(address for address in found if address is not None))


def dial_tcp(address: Address, port: int, seconds: float) -> httpcore.NetworkStream:
    """Connect to an address, without any name lookup."""
    return httpcore.SyncBackend().connect_tcp(str(address), port, timeout=seconds)


class WebResponse:
    """Response with its headers received and its body still unread."""

    def __init__(self, url: httpx.URL, response: httpcore.Response, max_bytes: int) -> None:
        self.url = url
        """URL that answered, after redirects"""
        self.status: int = response.status
        self.headers = httpx.Headers(response.headers)
        self._response, self._max_bytes = response, max_bytes

    @property
    def size(self) -> int | None:
        """Return the size of the body in bytes if the headers declare it; None for a compressed body."""
        declared = self.headers.get("content-length", "")
        return int(declared) if declared.isdigit() and not self._encoding else None

    @property
    def _encoding(self) -> str:
        named = self.headers.get("content-encoding", "").strip().lower()
        return "" if named == "identity" else named

    def read(self) -> bytes:
        """Read the body and unpack it."""
        declared = self.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > self._max_bytes:
            raise _too_large(self.url, self._max_bytes)
        pieces: Iterable[bytes] = self._response.iter_stream()
        if self._encoding in ("gzip", "x-gzip"):
            pieces = inflate(pieces, self._max_bytes, str(self.url))
        elif self._encoding:
            raise BrokenDocument("unsupported-encoding", f"{self.url} is encoded as {self._encoding!r}, unasked")
        return b"".join(pieces)


class GuardedClient:
    """HTTP client restricted to permitted addresses. Thread-safe.

    Args:
        allowed: allow-list of the operator, in addition to the public web.
        user_agent: value of the User-Agent header.
        max_bytes: maximum of a body, on the wire and once unpacked.
        seconds: time limit of an exchange, redirects included.
        follow_redirects: if False, a redirect refuses the document.
        resolve: resolver.
        dial: function that opens connections.
    """

    def __init__(
        self,
        allowed: Sequence[Allowed],
        *,
        user_agent: str,
        max_bytes: int,
        seconds: float,
        follow_redirects: bool = True,
        resolve: Resolve = resolve_by_system,
        dial: Dial = dial_tcp,
    ) -> None:
        self._allowed, self._user_agent = tuple(allowed), user_agent
        self._max_bytes, self._seconds, self._follow = max_bytes, seconds, follow_redirects
        self._before: Before | None = None
        self._resolve, self._dial = resolve, dial

    @contextmanager
    def get(self, address: str, headers: Mapping[str, str] | None = None) -> Iterator[WebResponse]:
        """Request a document.

        Args:
            address: URL of the document.
            headers: headers in addition to the standard ones.

        Yields:
            The response, whatever its status, after redirects; its body is read on demand, within the `with` block.

        Raises:
            SkippedDocument: `too-large`.
            BrokenDocument: `bad-url`, `forbidden-address`, `redirected`, ...: a retry would not help.
            TransientError: `unreachable`, `timeout`, `connection`, `tls`, `truncated`.
        """
        url = readable_url(address)
        what, most = str(url), self._max_bytes
        budget = Budget(self._seconds, most + _HEADER_BYTES, what, lambda: _too_large(what, most))
        for _ in range(_MAX_REDIRECTS + 1):
            if self._before is not None:
                with budget.paused():
                    self._before(url)
            with self._exchange(url, headers or {}, budget) as response:
                answer = WebResponse(url, response, self._max_bytes)
                location = answer.headers.get("location")
                if answer.status not in _REDIRECTS or location is None:
                    yield answer
                    return
            url = self._redirected(url, location)
        raise BrokenDocument("redirected", f"{address} redirects more than {_MAX_REDIRECTS} times")

    def with_before(self, before: Before) -> GuardedClient:
        """Return a copy of the client that calls `before` ahead of each request; its time does not count."""
        changed = copy(self)
        changed._before = before
        return changed

    def check(self, url: httpx.URL) -> None:
        """Refuse a URL that is recognisably forbidden without a name lookup.

        Raises:
            BrokenDocument: `forbidden-address`.
        """
        host = url.raw_host.decode("ascii")
        if literal(host) is not None or host.rstrip(".") == "localhost":
            self._addresses(host, url.port or _SCHEMES[url.scheme])

    def _redirected(self, url: httpx.URL, location: str) -> httpx.URL:
        if not self._follow:
            raise BrokenDocument("redirected", f"{url} redirects to {location}; follow_redirects is off")
        target = joined(str(url), location)
        if holds_credentials(str(target)):
            raise BrokenDocument("bad-url", f"{url} redirects to a URL that holds credentials, which is not asked")
        return target

    @contextmanager
    def _exchange(self, url: httpx.URL, headers: Mapping[str, str], budget: Budget) -> Iterator[httpcore.Response]:
        sent = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": self._user_agent,
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
            "Connection": "close",
            **headers,
        }
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), _SILENCE_SECONDS)
        backend = _GuardedBackend(self._addresses, self._dial, budget)
        # One pool per exchange: every connection belongs to one check of one name, and to one budget.
        with (
            _in_own_words(url, budget),
            httpcore.ConnectionPool(ssl_context=_trust(), network_backend=backend, max_connections=1) as pool,
            pool.stream("GET", target, headers=list(sent.items()), extensions={"timeout": timeout}) as response,
        ):
            yield response

    def _addresses(self, host: str, port: int) -> Sequence[Address]:
        """Return all addresses of a host, each of them checked."""
        known = literal(host)
        try:
            addresses = [known] if known is not None else self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise TransientError("unreachable", f"host {host} cannot be found: {first_line(error)}") from error
        if not addresses:
            raise TransientError("unreachable", f"host {host} has no address")
        refused = refusal(host, port, addresses, self._allowed)
        if refused is not None:
            raise BrokenDocument("forbidden-address", refused)
        return addresses


def readable_url(address: str) -> httpx.URL:
    """Parse a web URL, without its fragment; all further steps use this result.

    Raises:
        BrokenDocument: `bad-url`: it is invalid, or ambiguous to parsers.
    """
    shown = address if len(address) <= 200 else address[:200] + "..."
    authority = re.split("[/?#]", address.partition("://")[2], maxsplit=1)[0]
    if len(address) > _MAX_URL_CHARACTERS or "\\" in authority:
        raise BrokenDocument("bad-url", f"{shown!r} is too long, or has a backslash in its host")
    if "@" in authority:
        raise BrokenDocument("bad-url", "a URL with a user name or password is not asked")
    try:
        url = httpx.URL(address.strip(" ")).copy_with(fragment=None)
        host = url.host
    except (httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise BrokenDocument("bad-url", f"{shown!r} is not a URL: {first_line(error)}") from error
    if url.scheme not in _SCHEMES or not host or url.userinfo:
        raise BrokenDocument("bad-url", f"{shown!r} is not an address of the web (http or https, and a host)")
    if url.port is not None and not 0 < url.port < 65_536:
        raise BrokenDocument("bad-url", f"{shown!r} names an impossible port")
    return url


def joined(base: str, reference: str) -> httpx.URL:
    """Resolve a reference, absolute or relative, in a document at `base`.

    Raises:
        BrokenDocument: `bad-url`.
    """
    try:
        absolute = str(httpx.URL(base).join(reference.strip()))
    except (httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise BrokenDocument("bad-url", f"{base} refers to {reference[:200]!r}: {first_line(error)}") from error
    return readable_url(absolute)


class _GuardedBackend(httpcore.NetworkBackend):
    """Connects only to checked addresses."""

    def __init__(self, addresses: Callable[[str, int], Sequence[Address]], dial: Dial, budget: Budget) -> None:
        self._addresses, self._dial, self._budget = addresses, dial, budget

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - part of the interface, and never given here
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the same
    ) -> httpcore.NetworkStream:
        failed: Exception | None = None
        for address in self._addresses(host, port)[:_MAX_ADDRESSES_TRIED]:
            try:
                stream = self._dial(address, port, self._budget.seconds(timeout))
                return cast(httpcore.NetworkStream, BudgetedStream(stream, lambda: self._budget))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError(f"host {host} has no address")


@contextmanager
def _in_own_words(url: httpx.URL, budget: Budget) -> Iterator[None]:
    """Translate errors of the HTTP library into the project's errors."""
    try:
        yield
    except httpcore.TimeoutException as error:
        budget.seconds(None)
        raise TransientError("timeout", f"{url} said nothing for {_SILENCE_SECONDS:g} s") from error
    except httpcore.ConnectError as error:
        reason = "tls" if isinstance(error.__context__, ssl.SSLError) else "unreachable"
        raise TransientError(reason, f"{url} cannot be reached: {first_line(error)}") from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise TransientError("connection", f"{url} broke off: {first_line(error)}") from error


def _too_large(url: httpx.URL | str, limit: int) -> SkippedDocument:
    return SkippedDocument("too-large", f"{url} has more than {limit} bytes (max_bytes)")


@cache
def _trust() -> ssl.SSLContext:
    """Trust the system's certificate authorities, which may include an intranet's, and those that browsers trust."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
