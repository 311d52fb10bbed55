"""Addresses, hosts and origins: the machine itself is told apart from everything else."""

import pytest

from parquetry.serving.access.origin import host_allowed, host_name, is_foreign, is_loopback, write_allowed

LOOPBACK = ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "::ffff:127.0.0.1", "localhost", "LOCALHOST", "localhost.",
            "app.localhost", "0:0:0:0:0:0:0:1"]  # fmt: skip
ELSEWHERE = [None, "", "0.0.0.0", "::", "10.0.0.1", "192.168.1.1", "8.8.8.8", "fe80::1", "::ffff:10.0.0.1",
             "169.254.169.254", "localhost.example.com", "127.0.0.1.example.com", "mylocalhost", "2130706433", "127.1",
             "0x7f000001", "017700000001", "testclient", "127.0.0.1:8000", "evil.com"]  # fmt: skip


@pytest.mark.parametrize("address", LOOPBACK)
def test_address_of_the_machine_itself(address):
    assert is_loopback(address)


@pytest.mark.parametrize("address", ELSEWHERE)
def test_address_of_any_other_place_or_of_none(address):
    """Notations that only some programs understand count as foreign: browsers write an address in its normal form."""
    assert not is_loopback(address)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:8000", "localhost"),
        ("LocalHost", "localhost"),
        ("[::1]:8000", "::1"),
        ("kb.example.com.", "kb.example.com"),
        ("", None),
        (":8000", None),
        ("a b", None),
        ("localhost:port", None),
        ("localhost:99999", None),
        ("user@localhost", None),
        ("evil.com/localhost", None),
        ("localhost#.evil.com", None),
        ("localhost?.evil.com", None),
        ("localhost\t.evil.com", None),
        ("[::1", None),
    ],
)
def test_name_in_a_host_header(header, name):
    assert host_name(header) == name


@pytest.mark.parametrize(
    ("headers", "hosts", "with_tokens", "without"),
    [
        (["localhost:8000"], (), True, True),
        (["127.0.0.1"], (), True, True),
        (["[::1]:1"], ("kb.example.com",), True, True),
        (["kb.example.com"], ("kb.example.com",), True, True),
        (["KB.example.com:8443"], ("kb.Example.com",), True, True),
        (["kb.example.com"], (), True, False),
        (["evil.com"], (), True, False),
        (["evil.com"], ("kb.example.com",), False, False),
        (["kb.example.com.evil.com"], ("kb.example.com",), False, False),
        (["localhost", "evil.com"], (), False, False),
        (["localhost", "localhost"], (), False, False),
        ([], (), True, False),
        ([], ("kb.example.com",), False, False),
        ([""], (), False, False),
    ],
)
def test_host_that_a_request_may_name(headers, hosts, with_tokens, without):
    assert host_allowed(headers, hosts, any_host=True) == with_tokens
    assert host_allowed(headers, hosts, any_host=False) == without


@pytest.mark.parametrize(
    ("origin", "host", "foreign"),
    [
        (None, "localhost:8000", False),
        ("http://localhost:8000", "localhost:8000", False),
        ("http://LOCALHOST:8000", "localhost:8000", False),
        ("http://[::1]:8000", "[::1]:8000", False),
        ("https://kb.example.com", "kb.example.com", False),
        ("https://kb.example.com", "kb.example.com:443", False),
        ("http://kb.example.com:80", "kb.example.com", False),
        ("http://localhost:3000", "localhost:8000", True),
        ("http://127.0.0.1:8000", "localhost:8000", True),
        ("https://evil.com", "localhost:8000", True),
        ("https://evil.com", "", True),
        ("https://evil.com", None, True),
        ("null", "localhost:8000", True),
        ("null", "null", True),
        ("", "localhost:8000", True),
        ("http://localhost:8000.evil.com", "localhost:8000", True),
        ("http://localhost:8000@evil.com", "localhost:8000", True),
        ("http://localhost:8000/", "localhost:8000", True),
        ("file://", "localhost:8000", True),
        ("chrome-extension://abc", "localhost:8000", True),
    ],
)
def test_origin_is_foreign_unless_it_is_the_service(origin, host, foreign):
    assert is_foreign(origin, host) == foreign


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "post", "PROPFIND"])
@pytest.mark.parametrize(
    ("origin", "fetch_site", "origins", "allowed"),
    [
        (None, None, (), True),
        (None, "same-origin", (), True),
        (None, "none", (), True),
        (None, "cross-site", (), False),
        (None, "same-site", (), False),
        (None, "something-new", (), False),
        ("http://localhost:8000", "same-origin", (), True),
        ("https://evil.com", "cross-site", (), False),
        ("https://evil.com", None, (), False),
        ("https://evil.com", "same-origin", (), False),
        ("null", None, (), False),
        ("https://app.example.com", "cross-site", ("https://app.example.com",), True),
        ("https://app.example.com.evil.com", None, ("https://app.example.com",), False),
        ("http://app.example.com", None, ("https://app.example.com",), False),
        ("https://evil.com", None, ("*",), True),
    ],
)
def test_page_that_may_write(method, origin, fetch_site, origins, allowed):
    assert write_allowed(method, origin, "localhost:8000", fetch_site, origins) == allowed


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "get"])
def test_reads_are_left_to_the_browser(method):
    """Without CORS, it shows no answer to the page."""
    assert write_allowed(method, "https://evil.com", "localhost:8000", "cross-site", ())
