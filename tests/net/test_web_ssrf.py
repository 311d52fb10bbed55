"""No request reaches a forbidden address, for any spelling of its URL; a canary on loopback watches."""

import json
import re
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import httpcore
import pytest

from parquetry.errors import BrokenDocument, ParquetryError, TransientError
from parquetry.net.client import GuardedClient, resolve_by_system
from parquetry.net.ssrf import described, literal, parse_allowed
from tests.servers.web_server import Page, RawServer, WebServer

CORPORA = Path(__file__).parents[3] / "shared" / "corpora"
NAMES = {
    "localtest.example": ["127.0.0.1"],
    "private.example": ["10.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "both.example": ["93.184.215.14", "127.0.0.1"],
    "both-reversed.example": ["127.0.0.1", "93.184.215.14"],
    "six.example": ["2606:4700::1111", "::1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "translated.example": ["64:ff9b::7f00:1"],
    "tunnel.example": ["2002:7f00:1::"],
    "teredo.example": ["2001:0:4136:e378:8000:63bf:80ff:fffe"],
    "site.example": ["fec0::1"],
    "unique.example": ["fd00::1"],
    "zero.example": ["0.0.0.0"],
    "unspecified.example": ["::"],
    "broadcast.example": ["255.255.255.255"],
    "multicast.example": ["224.0.0.251"],
    "shared.example": ["100.64.1.1"],
    "azure.example": ["168.63.129.16"],
    "alibaba.example": ["100.100.100.200"],
    "oracle.example": ["192.0.0.192"],
    "aws6.example": ["fd00:ec2::254"],
    "benchmark.example": ["198.18.0.1"],
    "link.example": ["fe80::1%1"],
    "xn--e1afmkfd.example": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "public.example": ["93.184.215.14"],
}


class Watched:
    """A client that sends every connection, to any address, to the canary and records it."""

    def __init__(self, canary, resolve=None, allow=(), **options):
        self.dialled, self.resolved, self._canary = [], [], canary
        self._resolve = resolve or self.by_name
        self.client = GuardedClient(
            parse_allowed(allow), user_agent="t", max_bytes=1 << 20, seconds=5, resolve=self.note, dial=self.dial,
            **options,
        )  # fmt: skip

    def by_name(self, host, port):
        if host.rstrip(".").lower() in NAMES:
            return [ip_address(address) for address in NAMES[host.rstrip(".").lower()]]
        return resolve_by_system(host, port)

    def note(self, host, port):
        self.resolved.append(host)
        return self._resolve(host, port)

    def dial(self, address, port, seconds):
        self.dialled.append((address, port))
        return httpcore.SyncBackend().connect_tcp("127.0.0.1", self._canary.port, timeout=seconds)

    def refused(self, url):
        with pytest.raises(ParquetryError) as raised, self.client.get(url):
            pass
        return raised.value


@pytest.fixture(scope="module")
def canary():
    with RawServer() as server:
        yield server


# Every spelling of 127.0.0.1 and other internal addresses that resolvers accept, or that some program reads as one.
LOOPBACK_SPELLINGS = [
    "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.00.00.01", "0127.0.0.1", "0177.0.0.1", "0177.0.0.01",
    "0177.1", "00000177.1", "0x7f.0.0.1", "0x7f.1", "0x7f000001", "0X7F000001", "0x7F.0x0.0x0.0x1", "2130706433",
    "017700000001", "0000017700000001", "127.0x0.0.1", "127.0.0.0x1", "127.000.000.001", "127.255.255.255",
    "127.127.127.127", "127.0.0.2", "localhost", "LOCALHOST", "localhost.", "LocalHost", "0", "0.0.0.0", "00.00.00.00",
    "0x0", "0.0", "0000", "0.0.0.0.", "127.0.0.1%00", "127.0.0.1%0d%0a", "%31%32%37.0.0.1", "127%2e0%2e0%2e1",
    "①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "ｌｏｃａｌｈｏｓｔ",
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::1]", "[::0001]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::]",
    "[::127.0.0.1]", "[::7f00:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:127.0.0.1]",
    "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:0:127.0.0.1]", "[::ffff:0.0.0.0]", "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]", "[::1%25lo]", "[::1%lo]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[fe80::5efe:127.0.0.1]", "[2600::5efe:127.0.0.1]",
]  # fmt: skip
OTHERS = [
    "10.0.0.1", "10.1", "167772161", "0xa.0.0.1", "012.0.0.1", "172.16.0.1", "172.31.255.254", "0xac100001",
    "192.168.0.1", "192.168.1", "3232235521", "0xc0a80001", "030052000001", "169.254.169.254", "169.254.43518",
    "2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376", "169.254.169.254.", "169.16689662",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "169.254.170.2",
    "168.63.129.16", "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.0.1", "198.18.0.1", "198.19.255.254",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "4294967295", "0xffffffff", "[fc00::1]",
    "[fd00:ec2::254]", "[fd12:3456:789a::1]", "[fe80::1]", "[fe80::1%25eth0]", "[fec0::1]", "[feff::1]", "[ff02::1]",
    "[ff0e::fb]", "[100::1]", "[2001:db8::1]", "[3fff::1]", "[5f00::1]", "[::ffff:100.64.0.1]", "[::ffff:10.0.0.1]",
    "[2001::1]", "[2001:10::1]", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
]  # fmt: skip
WHOLE = [
    "http://public.example@127.0.0.1/", "http://127.0.0.1@public.example/", "http://user:pass@private.example/",
    "http://@127.0.0.1/", "http://public.example%40127.0.0.1/", "http://127.0.0.1\\@public.example/",
    "http://public.example\\@127.0.0.1/", "http://127.0.0.1\\.public.example/", "http://127.0.0.1#@public.example/",
    "http://127.0.0.1?@public.example/", "http://127.0.0.1:80@public.example:80/", "http:\\\\127.0.0.1\\",
    "http:127.0.0.1/", "http:/127.0.0.1/", "http:///127.0.0.1/", "http:////127.0.0.1/", "//127.0.0.1/", "127.0.0.1",
    "/etc/passwd", "", "http://", "https://", "http://:80/", "http://?x", "http://#x", "http:// 127.0.0.1/",
    "http://127.0.0.1 /", "http://127.0.0.1\t/", "ht\ntp://127.0.0.1/", "http://127.0.0.1\r\nHost: x/",
    "http://127.0.0.1\x00.public.example/", "\x01http://127.0.0.1/", " http://127.0.0.1/ ", "HTTP://127.0.0.1/",
    "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/stat", "ldap://127.0.0.1/", "tftp://127.0.0.1/x", "sftp://127.0.0.1/", "jar:http://127.0.0.1!/",
    "data:text/html,x", "javascript:alert(1)", "netdoc:///etc/passwd", "php://filter", "ws://127.0.0.1/",
    "unix:///var/run/docker.sock", "http+unix://%2fvar%2frun%2fdocker.sock/", "view-source:http://127.0.0.1/",
    "http://public.example:22/", "http://public.example:25/", "http://public.example:6379/",
    "http://public.example:0/", "http://public.example:65536/", "http://public.example:-1/", "http://public.example:8o/",
    "http://[127.0.0.1]/", "http://[::1/", "http://::1/", "http://[::1]x/", "http://[v1.fe80::a]/", "http://[]/",
    "http://256.256.256.256/", "http://127.0.0.1.1.1/", "http://0x7f.0.0.0.1/", "http://1.2.3.4.5/",
    "http://" + "a" * 64 + ".example/", "http://" + "a." * 200 + "example/", "http://public.example/" + "x" * 9000,
    "http://ex ample/", "http://exa\u00admple\u200b.com\u2044x/", "http://-/", "http://./", "http://../",
    "http://xn--a/", "http://xn--/", "http://\u202e1.0.0.721/", "http://a\u3002localhost\u3002/",
]  # fmt: skip
URLS = [
    *(f"http://{host}/" for host in (*LOOPBACK_SPELLINGS, *OTHERS)),
    *(f"http://{name}/" for name in NAMES if name != "public.example"),
    *(f"https://{host}/latest/meta-data/" for host in ("169.254.169.254", "localtest.example", "[::1]", "127.1")),
    *(f"http://{host}:8080/" for host in ("127.0.0.1", "localhost", "[::1]", "private.example", "10.0.0.1")),
    *WHOLE,
]


def test_the_table_is_as_large_as_it_claims():
    assert len(URLS) == len(set(URLS)) >= 150


@pytest.mark.parametrize("url", URLS, ids=[ascii(url)[:60] for url in URLS])
def test_url_of_a_forbidden_place_is_refused_without_a_connection(url, canary):
    watched = Watched(canary)
    error = watched.refused(url)
    assert isinstance(error, BrokenDocument | TransientError)
    if isinstance(error, TransientError):
        # The system knows no address for this name; in a URL, it is not a spelling of an address.
        assert error.reason == "unreachable"
    else:
        assert error.reason in ("forbidden-address", "bad-url")
    assert (watched.dialled, canary.connections) == ([], 0)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1\\.public.example/", "http://public.example\\@127.0.0.1/", "http://u@public.example/",
        "http://:p@public.example/", "http://@public.example/", "http://public.example:0/", "ftp://public.example/",
        "http://public.example:65536/", "http://xn--a/", "http://public.example/" + "x" * 9000, "public.example", "",
    ],
    ids=lambda url: ascii(url)[:40],
)  # fmt: skip
def test_url_that_programs_read_in_different_ways_is_refused_as_such(url, canary):
    watched = Watched(canary)
    assert (watched.refused(url).reason, watched.resolved) == ("bad-url", [])


# Only URLs that a server can send in a header.
LOCATIONS = [url for url in URLS if url and not re.search("[\r\n\x00\x01]", url)]


@pytest.fixture(scope="module")
def redirecting():
    with WebServer() as server:
        yield server


def watched_beyond(server, canary, **options):
    """A client that reaches one server directly and sends everything else to the canary."""
    watched = Watched(canary, allow=[server.place], **options)
    to_canary = watched.client._dial

    def dial(address, port, seconds):
        if port != server.port:
            return to_canary(address, port, seconds)
        return httpcore.SyncBackend().connect_tcp(str(address), port, timeout=seconds)

    watched.client._dial = dial
    return watched


@pytest.mark.parametrize("url", LOCATIONS, ids=[ascii(url)[:60] for url in LOCATIONS])
def test_redirect_to_a_forbidden_place_is_refused_without_a_connection(url, redirecting, canary):
    redirecting.pages = {"/go": Page("", 302, {"Location": url.encode("utf-8", "replace").decode("latin-1")})}
    watched = watched_beyond(redirecting, canary)
    try:
        with watched.client.get(f"{redirecting.url}/go") as answer:
            # A location that reads as a path is requested from the redirecting server.
            assert (answer.status, answer.url.netloc.decode()) == (404, redirecting.place)
    except ParquetryError as error:
        assert isinstance(error, BrokenDocument | TransientError)  # noqa: PT017 - one of two outcomes
    assert (watched.dialled, canary.connections) == ([], 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ["localtest.example", "metadata.example", "both.example"])
def test_every_kind_of_redirect_is_checked_again(status, name, redirecting, canary):
    redirecting.pages = {"/go": Page("", status, {"Location": f"http://{name}/"})}
    watched = watched_beyond(redirecting, canary)
    error = watched.refused(f"{redirecting.url}/go")
    assert (error.reason, watched.resolved, watched.dialled) == ("forbidden-address", [name], [])


def test_chain_of_redirects_is_checked_to_its_end(redirecting, canary):
    steps = {f"/{n}": Page("", 302, {"Location": f"/{n + 1}"}) for n in range(4)}
    redirecting.pages = {**steps, "/4": Page("", 302, {"Location": "http://private.example/"})}
    assert watched_beyond(redirecting, canary).refused(f"{redirecting.url}/0").reason == "forbidden-address"
    redirecting.pages = {"/0": Page("", 302, {"Location": "/0"})}
    assert "more than 5 times" in str(watched_beyond(redirecting, canary).refused(f"{redirecting.url}/0"))


def test_redirect_is_refused_where_the_settings_say_so(redirecting, canary):
    redirecting.pages = {"/go": Page("", 302, {"Location": "/there"}), "/there": Page("fine")}
    error = watched_beyond(redirecting, canary, follow_redirects=False).refused(f"{redirecting.url}/go")
    assert (error.reason, "follow_redirects is off" in str(error)) == ("redirected", True)


def flipping(*answers):
    """A resolver that returns a different address each time, as an attacker's name server does."""
    turns = iter(answers)
    return lambda host, port: [ip_address(address) for address in next(turns)]


def saying(reply):
    def play(connection):
        connection.sendall(reply)

    return play


def test_connection_goes_to_the_very_address_that_was_checked():
    with RawServer(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")) as server:
        watched = Watched(server, flipping(["93.184.215.14"], ["127.0.0.1"]))
        with watched.client.get("http://rebinding.example/") as answer:
            assert answer.read() == b"fine"
    assert watched.resolved == ["rebinding.example"], "resolved once: there is no second answer to fall for"
    assert watched.dialled == [(IPv4Address("93.184.215.14"), 80)]


def test_name_that_flips_between_two_requests_is_checked_for_each():
    with RawServer(saying(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")) as server:
        watched = Watched(server, flipping(["93.184.215.14"], ["127.0.0.1"]))
        error = watched.refused("http://rebinding.example/")
        assert (error.reason, server.connections) == ("forbidden-address", 1)
    assert watched.dialled == [(IPv4Address("93.184.215.14"), 80)]


@pytest.mark.parametrize("second", ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "0.0.0.0"])
def test_next_exchange_with_a_flipped_name_is_refused(second):
    with RawServer(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as server:
        watched = Watched(server, flipping(["93.184.215.14"], [second]))
        with watched.client.get("http://rebinding.example/") as answer:
            assert answer.status == 200
        assert watched.refused("http://rebinding.example/").reason == "forbidden-address"
        assert server.connections == 1


def test_proxies_of_the_environment_are_not_used(monkeypatch, canary):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, canary.url)
    with WebServer({"/": Page("fine")}) as server:
        watched = watched_beyond(server, canary)
        with watched.client.get(f"{server.url}/") as answer:
            assert answer.read() == b"fine"
    assert canary.connections == 0


def worst_case(host, port):
    """Resolve every name to loopback; spellings of addresses resolve to those addresses."""
    try:
        import socket

        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return [address for entry in found if (address := literal(str(entry[4][0]))) is not None]
    except OSError:
        return [IPv4Address("127.0.0.1")]


def assert_none_connects(urls, canary):
    """Assert that connections are only tried to public Internet addresses; the dialler refuses those."""

    def dial(address, port, seconds):
        assert described(address) is None, (url, address)
        tried.append(address)
        raise httpcore.ConnectError("an address of the Internet, which this test leaves alone")

    tried = []
    watched = Watched(canary, worst_case)
    watched.client._dial = dial
    for url in urls:
        assert watched.refused(url).reason in ("forbidden-address", "bad-url", "unreachable"), url
    assert canary.connections == 0
    return tried


@pytest.mark.slow
def test_published_lists_of_payloads_reach_nothing(canary):
    folder = CORPORA / "payloads"
    if not folder.is_dir():
        pytest.skip("the development lists of payloads are not on this machine")
    texts = [
        file.read_text("utf-8", "replace") for file in folder.rglob("*") if file.is_file() and file.suffix != ".xml"
    ]
    urls = {url for text in texts for url in re.findall(r"[A-Za-z][A-Za-z0-9+.-]*:/?/?[^\s`'\"<>]+", text)}
    urls |= {line for text in texts for line in text.splitlines() if len(line) < 500}
    assert len(urls) > 500
    assert_none_connects(sorted(urls), canary)


@pytest.mark.slow
def test_published_tests_of_url_parsers_reach_nothing(canary):
    folder = CORPORA / "url-wpt" / "tests" / "wpt"
    if not folder.is_dir():
        pytest.skip("the development lists of URLs are not on this machine")
    urls = set()
    for name in ("urltestdata.json", "ada_extra_urltestdata.json", "toascii.json", "IdnaTestV2.json"):
        for case in json.loads((folder / name).read_text("utf-8")):
            if isinstance(case, dict) and isinstance(case.get("input"), str):
                urls |= {case["input"], f"http://{case['input']}/"}
    assert len(urls) > 1000
    assert_none_connects(sorted(urls), canary)
