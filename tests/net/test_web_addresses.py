"""Allowed addresses: the table, and the addresses that an operator allows."""

from ipaddress import ip_address

import pytest

from parquetry.errors import SettingsError
from parquetry.net.ssrf import described, parse_allowed, refusal

FORBIDDEN = {
    "0.0.0.0": "this host", "0.1.2.3": "this host", "10.0.0.0": "private", "10.255.255.255": "private",
    "100.64.0.1": "shared", "100.127.255.255": "shared", "100.100.100.200": "metadata", "127.0.0.1": "loopback",
    "127.255.255.254": "loopback", "169.254.169.254": "metadata", "169.254.170.2": "metadata",
    "169.254.0.1": "link-local", "172.16.0.1": "private", "172.31.255.255": "private", "192.0.0.1": "protocols",
    "192.0.0.192": "metadata", "192.0.2.1": "documentation", "192.88.99.1": "relay", "192.168.0.1": "private",
    "192.168.255.255": "private", "198.18.0.1": "benchmarks", "198.19.255.255": "benchmarks",
    "198.51.100.7": "documentation", "203.0.113.7": "documentation", "224.0.0.1": "multicast",
    "239.255.255.255": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
    "168.63.129.16": "platform", "::": "this host", "::1": "loopback", "::2": "IPv4", "::127.0.0.1": "IPv4",
    "::ffff:127.0.0.1": "IPv4", "::ffff:8.8.8.8": "IPv4", "::ffff:100.64.0.1": "IPv4", "::ffff:0:127.0.0.1": "IPv4",
    "64:ff9b::a9fe:a9fe": "NAT64", "64:ff9b::808:808": "NAT64", "64:ff9b:1::7f00:1": "NAT64",
    "64:ff9b:1:ffff::1": "NAT64", "64:ff9b:2::1": "reserved", "100::1": "reserved", "100:0:0:1::1": "reserved",
    "2001::1": "Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo", "2001:2::1": "protocols",
    "2001:10::1": "protocols", "2001:20::1": "protocols", "2001:1ff::1": "protocols", "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4", "2002:a9fe:a9fe::1": "6to4", "2002:808:808::1": "6to4", "3ffe::1": "reserved",
    "3fff::1": "documentation", "4000::1": "reserved", "5f00::1": "reserved", "8000::1": "reserved",
    "e000::1": "reserved", "fc00::1": "private", "fd00:ec2::254": "metadata", "fd20:ce::254": "metadata",
    "fd12:3456:789a::1": "private", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "febf::1": "link-local",
    "fec0::1": "private", "feff::1": "private", "ff02::1": "multicast", "ff0e::1": "multicast",
    "2600::5efe:7f00:1": "ISATAP", "2600::200:5efe:a00:1": "ISATAP", "fe80::5efe:127.0.0.1": "link-local",
}  # fmt: skip
PUBLIC = (
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
    "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111",
    "2a00:1450:4001::200e", "2600::1",
)  # fmt: skip


@pytest.mark.parametrize(("address", "kind"), FORBIDDEN.items(), ids=FORBIDDEN)
def test_address_that_is_no_host_of_the_internet_is_forbidden(address, kind):
    assert kind in (described(ip_address(address)) or "")


@pytest.mark.parametrize("address", PUBLIC)
def test_neighbours_of_forbidden_networks_are_public(address):
    assert described(ip_address(address)) is None


def ask(host, addresses, *allow, port=80):
    return refusal(host, port, [ip_address(address) for address in addresses], parse_allowed(allow))


def test_one_forbidden_answer_refuses_the_host():
    assert ask("a.example", ["8.8.8.8", "10.0.0.1"]) == (
        "a.example (10.0.0.1) is a private address; if that is meant, add 'a.example' to allow in [source.options]"
    )
    assert ask("a.example", ["8.8.8.8", "1.1.1.1"]) is None


def test_ports_that_no_web_server_listens_on_are_refused():
    assert "port 6379, which is not one of web servers" in ask("a.example", ["8.8.8.8"], port=6379)
    assert "'a.example:6379'" in ask("a.example", ["8.8.8.8"], port=6379)
    assert [ask("a.example", ["8.8.8.8"], port=port) for port in (80, 443, 8080, 8443)] == [None] * 4
    assert ask("a.example", ["8.8.8.8"], "a.example:6379", port=6379) is None


@pytest.mark.parametrize(
    ("allow", "host", "address", "port", "opened"),
    [
        ("wiki.intern", "wiki.intern", "10.1.2.3", 8000, True),
        ("Wiki.Intern.", "WIKI.intern", "10.1.2.3", 80, True),
        ("wiki.intern", "wiki.intern.", "10.1.2.3", 80, True),
        ("wiki.intern:8000", "wiki.intern", "10.1.2.3", 8000, True),
        ("wiki.intern:8000", "wiki.intern", "10.1.2.3", 80, False),
        ("wiki.intern", "evil.wiki.intern", "10.1.2.3", 80, False),
        ("wiki.intern", "wiki.intern.evil.example", "10.1.2.3", 80, False),
        ("wiki.intern", "wiki.intern", "169.254.169.254", 80, False),
        ("wiki.intern", "wiki.intern", "100.100.100.200", 80, False),
        ("wiki.intern", "wiki.intern", "fd00:ec2::254", 80, False),
        ("wiki.intern", "wiki.intern", "::ffff:10.1.2.3", 80, False),
        ("wiki.intern", "wiki.intern", "fd12::1", 80, True),
        ("bücher.intern", "xn--bcher-kva.intern", "10.1.2.3", 80, True),
        ("10.1.0.0/16", "anything.example", "10.1.255.1", 9000, True),
        ("10.1.0.0/16", "anything.example", "10.2.0.1", 80, False),
        ("10.1.0.0/16:8000", "anything.example", "10.1.0.1", 8000, True),
        ("10.1.0.0/16:8000", "anything.example", "10.1.0.1", 80, False),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", 49152, True),
        ("127.0.0.1", "localhost", "127.0.0.1", 80, True),
        ("127.0.0.1", "127.0.0.2", "127.0.0.2", 80, False),
        ("::1", "::1", "::1", 80, True),
        ("[::1]:8000", "::1", "::1", 8000, True),
        ("[::1]:8000", "::1", "::1", 80, False),
        ("fd12::/16", "h", "fd12::9", 80, True),
        ("169.254.169.254", "169.254.169.254", "169.254.169.254", 80, True),
        ("64:ff9b::/96", "a.example", "64:ff9b::808:808", 80, True),
        ("64:ff9b::/96", "a.example", "64:ff9b::a9fe:a9fe", 80, False),
        ("2002::/16", "a.example", "2002:7f00:1::", 80, False),
        ("2001::/32", "a.example", "2001:0:4136:e378:8000:63bf:f5ff:fffe", 80, False),
        ("::ffff:0:0/96", "a.example", "::ffff:127.0.0.1", 80, False),
    ],
)
def test_allow_list_opens_what_it_names_and_nothing_beside(allow, host, address, port, opened):
    assert (ask(host, [address], allow, port=port) is None) is opened


@pytest.mark.parametrize("entry", ["", "http://wiki.intern", "wiki.intern/docs", "10.1.0.1/16", "300.1.1.1", "a:b:c",
                                   "wiki.intern:99999", "*.intern", "[wiki]:80", "10.1/16"])  # fmt: skip
def test_unusable_entry_of_the_allow_list_is_told(entry):
    with pytest.raises(SettingsError, match="allow: "):
        parse_allowed([entry])
