"""Address checks for requests to URLs that others chose. Pure: resolves and connects to nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from parquetry.errors import SettingsError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

WEB_PORTS = frozenset({80, 443, 8080, 8443})
"""usual ports of web servers; a request to another port may reach something other than a web server"""

_PRIVATE = "a private address"
_FORBIDDEN: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), what)
    for network, what in (
        ("169.254.169.254/32", "the metadata service of a cloud"),
        ("169.254.170.2/32", "the metadata service of a cloud"),
        ("100.100.100.200/32", "the metadata service of a cloud"),
        ("192.0.0.192/32", "the metadata service of a cloud"),
        ("168.63.129.16/32", "the platform service of a cloud"),
        ("fd00:ec2::/32", "the metadata service of a cloud"),
        ("fd20:ce::254/128", "the metadata service of a cloud"),
        ("0.0.0.0/8", "an address of this host"),
        ("10.0.0.0/8", _PRIVATE),
        ("100.64.0.0/10", "a shared address of a provider"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", _PRIVATE),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "a relay between IPv6 and IPv4"),
        ("192.168.0.0/16", _PRIVATE),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("::/128", "an address of this host"),
        ("::1/128", "a loopback address"),
        ("::/96", "an IPv4 address within an IPv6 address"),
        ("::ffff:0:0/96", "an IPv4 address within an IPv6 address"),
        ("::ffff:0:0:0/96", "an IPv4 address within an IPv6 address"),
        ("64:ff9b::/96", "an IPv4 address behind a translator (NAT64)"),
        ("64:ff9b:1::/48", "an IPv4 address behind a translator (NAT64)"),
        ("2001::/32", "an IPv4 address behind a tunnel (Teredo)"),
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "reserved for documentation"),
        ("2002::/16", "an IPv4 address behind a tunnel (6to4)"),
        ("3ffe::/16", "a reserved address"),
        ("3fff::/20", "reserved for documentation"),
        ("fc00::/7", _PRIVATE),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", _PRIVATE),
        ("ff00::/8", "a multicast address"),
    )
)
"""Forbidden networks; the first one that contains an address describes it.

Source: the IANA special-purpose registries (RFC 6890 and its updates) and the documentation of cloud providers."""

_GLOBAL_IPV6 = IPv6Network("2000::/3")
"""all addresses assigned to hosts on the Internet so far (RFC 4291)"""
_BY_NAME = tuple(
    ip_network(network)
    for network in (
        "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7",
    )
)  # fmt: skip
"""networks that an allowed host name may resolve to; any other address must be allowed itself"""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""third quarter of an address with an embedded IPv4 address in its last quarter (RFC 5214)"""
_ENTRY = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<plain>[^:\[\]]+))(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Entry of an allow-list: a host or a network, on one port or on all."""

    host: str | None
    """lower case, without a final dot; None for a network"""
    network: Network | None
    """None for a host"""
    port: int | None
    """None for all ports"""

    def opens(self, host: str, address: Address, port: int) -> bool:
        """Return True if this entry permits a request to an address that `host` resolved to."""
        if self.port not in (None, port):
            return False
        if self.network is not None:
            return address in self.network
        if self.host != host.lower().rstrip("."):
            return False
        named = described(address)
        return named is None or ("cloud" not in named and any(address in network for network in _BY_NAME))


def parse_allowed(entries: Sequence[str]) -> tuple[Allowed, ...]:
    """Parse an allow-list: `wiki.intern`, `wiki.intern:8000`, `10.1.0.0/16`, `127.0.0.1:8000`, `[fd12::/16]:8000`.

    Raises:
        SettingsError: an entry has none of these forms.
    """
    return tuple(map(_parse, entries))


def _parse(entry: str) -> Allowed:
    text = entry.strip()
    network = _network(text)
    if network is not None:
        return Allowed(None, network, None)
    found = _ENTRY.fullmatch(text)
    if found is None or int(found["port"] or 0) > 65_535:
        raise SettingsError(f"allow: {entry!r} is not a host, an address or a network, with or without a port")
    port = int(found["port"]) if found["port"] else None
    name = found["bracketed"] or found["plain"]
    network = _network(name)
    if network is None and (
        found["bracketed"] or not re.fullmatch(r"[\w.-]+", name) or name.strip("0123456789.") == ""
    ):
        raise SettingsError(f"allow: {entry!r} is not a host, an address or a network, with or without a port")
    return Allowed(None if network else _ascii(name), network, port)


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def _ascii(name: str) -> str:
    """Return a host name in the form of a parsed URL."""
    import httpx

    return httpx.URL(f"http://{name}/").raw_host.decode("ascii").rstrip(".")


def described(address: Address) -> str | None:
    """Describe an address that no request may reach; return None for an ordinary host on the Internet."""
    for network, what in _FORBIDDEN:
        if address in network:
            return what
    if isinstance(address, IPv6Address):
        if address not in _GLOBAL_IPV6:
            return "a reserved address"
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
            return "an IPv4 address behind a tunnel (ISATAP)"
    return None


def embedded(address: Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses embedded in an IPv6 address."""
    if isinstance(address, IPv4Address):
        return ()
    if address.teredo:
        return address.teredo
    if address.sixtofour:
        return (address.sixtofour,)
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    what = described(address) or ""
    return (last,) if "IPv4" in what else ()


def refusal(host: str, port: int, addresses: Iterable[Address], allowed: Sequence[Allowed]) -> str | None:
    """Return the reason to refuse a request; None if it is permitted.

    Args:
        host: as in the URL.
        port: as in the URL, or the default of its scheme.
        addresses: all addresses of the host; a single forbidden one refuses the host.
        allowed: allow-list of the operator.
    """
    for address in addresses:
        for each in (address, *embedded(address)):
            what = described(each)
            opened = any(entry.opens(host, each, port) for entry in allowed)
            if opened or (what is None and port in WEB_PORTS):
                continue
            shown = host if host == str(address) else f"{host} ({address})"
            reason = f"is {what}" if what else f"is asked on port {port}, which is not one of web servers"
            return (
                f"{shown} {reason}; if that is meant, add {_entry(host, address, port)!r} to allow in [source.options]"
            )
    return None


def _entry(host: str, address: Address, port: int) -> str:
    """Return the narrowest allow-list entry for a host."""
    try:
        named = host if port in WEB_PORTS else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        _parse(named)
    except SettingsError:
        # A number that resolvers interpret as an address.
        return _entry(str(address), address, port)
    return named


def literal(host: str) -> Address | None:
    """Return the address of a URL's host if it is a literal in the usual form."""
    try:
        return ip_address(host)
    except ValueError:
        return None
