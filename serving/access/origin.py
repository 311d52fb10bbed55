"""Rules about the place that a request comes from: the machine itself, other machines, and pages in browsers.

Without a token, only the machine itself is served. A browser on that machine is a way in for every page that it shows:
a page can send requests to a loopback address, and read the answers if its own name resolves to it (DNS rebinding). So
the header `Host` has to name a loopback address or a known host, and writes of other origins are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_OWN_SITES = frozenset({"same-origin", "none"})
"""values of `Sec-Fetch-Site` for requests of the service's own pages and of the user"""
ANY = "*"
"""in a list of origins: all"""


def is_loopback(address: str | None) -> bool:
    """Return True if an address or host name is that of the machine itself.

    Args:
        address: without a port; None if it is unknown, which is no loopback address.
    """
    if not address:
        return False
    name = address.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        number = ip_address(name)
    except ValueError:
        return False
    mapped = number.ipv4_mapped if isinstance(number, IPv6Address) else None
    return (mapped or number).is_loopback


def host_name(header: str) -> str | None:
    """Return the name in a header `Host`, in lower case and without its port; None if the header is not valid."""
    place = _place(f"//{header}")
    return None if place is None else place[0]


def host_allowed(headers: Sequence[str], hosts: Collection[str], *, any_host: bool) -> bool:
    """Return True if a request may name this host.

    Args:
        headers: every header `Host` of the request.
        hosts: names that are allowed besides loopback ones; empty for none, or all with `any_host`.
        any_host: allow all names if `hosts` is empty, because no request is served without a token.
    """
    if len(headers) != 1:
        return any_host and not hosts and not headers
    name = host_name(headers[0])
    if name is None:
        return False
    if is_loopback(name) or name in {host.lower() for host in hosts}:
        return True
    return any_host and not hosts


def is_foreign(origin: str | None, host: str | None) -> bool:
    """Return True if a header `Origin` names another place than the service.

    Args:
        origin: the header; None if there is none, as for requests of programs.
        host: the header `Host`.
    """
    if origin is None:
        return False
    ours = None if host is None else _place(f"//{host}", _scheme(origin))
    return ours is None or _place(origin) != ours


def write_allowed(
    method: str, origin: str | None, host: str | None, fetch_site: str | None, origins: Collection[str]
) -> bool:
    """Return True if a request may change something, as far as the page that sent it is concerned.

    Args:
        method: HTTP method; reads are always allowed.
        origin: header `Origin`; programs send none.
        host: header `Host`.
        fetch_site: header `Sec-Fetch-Site`, which browsers send with every request.
        origins: other origins whose pages may call the service.
    """
    if method.upper() in _READS:
        return True
    if origin is None:
        return fetch_site is None or fetch_site.lower() in _OWN_SITES
    return not is_foreign(origin, host) or origin in origins or ANY in origins


def _scheme(origin: str) -> str:
    return origin.partition("://")[0].lower() if "://" in origin else ""


def _place(url: str, scheme: str = "") -> tuple[str, int | None] | None:
    """Return host and port of a URL; None if it names none, or more than that."""
    try:
        parts = urlsplit(url, scheme=scheme)
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not name or parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        return None
    return name.rstrip("."), port if port is not None else _DEFAULT_PORTS.get(parts.scheme)
