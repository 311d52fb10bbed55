"""Pages allowed by robots.txt."""

import httpx
import pytest

from parquetry.errors import BrokenDocument, SkippedDocument, TransientError
from parquetry.net.robots import Robots

RULES = b"""
User-agent: other
Disallow: /

User-agent: Parquetry
Crawl-delay: 2.5
Disallow: /*.cgi$
Disallow: /private
Allow: /private/open
"""


class Files:
    """A reader of texts by address that counts the requests."""

    def __init__(self, **texts):
        self.texts, self.asked = texts, []

    def __call__(self, address):
        self.asked.append(address)
        found = self.texts[httpx.URL(address).host.partition(".")[0]]
        if isinstance(found, Exception):
            raise found
        return found


def admit(files, *addresses):
    robots = Robots(files, "Parquetry")
    return [robots.admit(httpx.URL(address)) for address in addresses]


def refused(files, address):
    with pytest.raises(SkippedDocument) as raised:
        admit(files, address)
    return raised.value.reason


def test_longest_rule_wins_and_patterns_are_understood():
    files = Files(a=(200, RULES))
    assert (
        admit(files, "http://a.example/x", "http://a.example/private/open/x", "http://a.example/x.cgi?y") == [2.5] * 3
    )
    for path in ("/private", "/private/x", "/privately", "/x.cgi"):
        assert refused(files, f"http://a.example{path}") == "robots"


def test_rules_beyond_the_first_500_kib_are_not_read():
    files = Files(host=(200, b"User-agent: *\nDisallow: /a\n" + b"Disallow: /none\n" * 32_000 + b"Disallow: /b\n"))
    assert admit(files, "http://host.example/b") == [0.0]
    with pytest.raises(SkippedDocument, match="does not allow"):
        admit(files, "http://host.example/a")


def test_each_host_and_port_and_scheme_is_asked_once():
    files = Files(a=(200, b""), b=(404, b"User-agent: *\nDisallow: /"))
    addresses = ("http://a.example/1", "http://a.example/2", "https://a.example/", "http://a.example:8080/")
    assert admit(files, *addresses, "http://b.example/x") == [0.0] * 5
    assert files.asked == [
        "http://a.example/robots.txt", "https://a.example/robots.txt", "http://a.example:8080/robots.txt",
        "http://b.example/robots.txt",
    ]  # fmt: skip


def test_delay_has_a_limit():
    assert admit(Files(a=(200, b"User-agent: *\nCrawl-delay: 86400")), "http://a.example/") == [30.0]


@pytest.mark.parametrize(
    "found",
    [(500, b""), (503, b""), (429, b""), TransientError("timeout", "slow"), BrokenDocument("redirected", "in circles")],
    ids=["500", "503", "429", "timeout", "circles"],
)
def test_rules_that_cannot_be_had_are_asked_for_again(found):
    files = Files(a=found)
    robots = Robots(files, "Parquetry")
    with pytest.raises(TransientError):
        robots.admit(httpx.URL("http://a.example/"))
    files.texts["a"] = (200, b"")
    assert robots.admit(httpx.URL("http://a.example/")) == 0.0


def test_host_that_must_not_be_asked_is_refused_as_such():
    with pytest.raises(BrokenDocument) as raised:
        admit(Files(a=BrokenDocument("forbidden-address", "inside")), "http://a.example/")
    assert raised.value.reason == "forbidden-address"
