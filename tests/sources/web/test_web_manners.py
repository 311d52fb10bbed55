"""The source obeys the rules and rates of web servers, and never requests internal addresses."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from parquetry.errors import SettingsError, SkippedDocument, TransientError
from parquetry.net.client import GuardedClient
from parquetry.net.host_throttle import HostThrottle
from parquetry.net.page_fetcher import PageFetcher
from parquetry.net.rate_limiter import RateLimiter
from parquetry.net.ssrf import parse_allowed
from parquetry.settings.sections import parse_settings
from parquetry.sources.base import Place
from parquetry.sources.providers import open_place
from parquetry.sources.registry import scopes_of
from tests.servers.web_server import Page, RawServer, WebServer
from tests.sources.web_shelf import scanned, sitemap, web


def test_robots_rules_are_kept(server):
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: parquetry\nDisallow: /private/\nAllow: /private/open$\n"
    paths = ("/a", "/private/b", "/private/open")
    server.pages |= {
        "/robots.txt": Page(rules),
        "/l": Page("\n".join(server.url + path for path in paths)),
        **{path: Page("x") for path in paths},
    }
    source = web(server, "/l")
    items, _ = scanned(source)
    assert [each.path for each in server.asked].count("/robots.txt") == 1
    assert sorted(server.paths()) == ["/a", "/l", "/private/open"]
    with pytest.raises(SkippedDocument, match=r"robots\.txt does not allow"):
        source.fetch(items["private/b"])
    assert server.asked == []


def test_page_behind_a_redirect_needs_permission_too(server):
    server.pages |= {
        "/robots.txt": Page("User-agent: *\nDisallow: /secret"),
        "/l": Page(f"{server.url}/go"),
        "/go": Page("", 302, {"Location": "/secret"}),
        "/secret": Page("x"),
    }
    items, _ = scanned(web(server, "/l"))
    assert items["go"].etag == "refused:robots"
    assert "/secret" not in server.paths()


@pytest.mark.parametrize(("status", "asked"), [(404, True), (403, True), (500, False), (503, False), (429, False)])
def test_rules_that_cannot_be_had_keep_pages_waiting_and_rules_that_are_not_there_do_not(server, status, asked):
    server.pages |= {"/robots.txt": Page("?", status), "/": Page("x")}
    source = web(server)
    if asked:
        assert len(scanned(source)[0]) == 1
    else:
        with pytest.raises(TransientError, match=f"answered {status}; pages there wait"):
            list(source.scan(""))
    assert server.paths() == (["/"] if asked else [])


def test_requests_keep_the_distance_that_the_host_or_the_settings_ask_for(server):
    server.pages |= {"/robots.txt": Page("User-agent: *\nCrawl-delay: 7"), "/a": Page("a"), "/b": Page("b")}
    slept = []
    client = GuardedClient(parse_allowed([server.place]), user_agent="t", max_bytes=999, seconds=9)
    fetcher = PageFetcher(client, 2.0, HostThrottle(RateLimiter(now=lambda: 0.0)))
    fetcher._pause = slept.append
    for path in ("/a", "/b"):
        with fetcher.visit(server.url + path) as answer:
            assert answer.status == 200
    assert [seconds for seconds in slept if seconds] == [7.0]


def test_listing_that_nobody_wants_any_more_does_not_sit_out_its_turns(server):
    """Otherwise an interrupted run would take more than a hundred seconds to end."""
    server.pages["/s"] = Page(sitemap(server, ("/dated", "2026-01-01"), *((f"/{n}", None) for n in range(20))))
    listing = web(server, "/s", requests_per_second=0.01).scan("")
    assert next(listing).path.endswith("/dated")
    listing.close()
    assert server.paths() == ["/s"]


def in_fifty_minutes():
    """Return a date, made when the test runs: tests may be collected long before."""
    return format_datetime(datetime.now(UTC) + timedelta(minutes=50), usegmt=True)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", (120, 120)),
        (in_fifty_minutes, (2000, 3000)),
        ("Tue, 03 Feb 2026 10:00:00 GMT", (0, 0)),
        ("soon", None),
        ("-5", None),
    ],
    ids=["seconds", "date to come", "date gone by", "word", "less than nothing"],
)
def test_wish_to_be_left_alone_is_understood(header, seconds):
    page = Page("later", 503, {"Retry-After": header() if callable(header) else header})
    with WebServer({"/": page}) as server, pytest.raises(TransientError) as raised:
        list(web(server).scan(""))
    asked = raised.value.retry_after
    assert asked is None if seconds is None else seconds[0] <= asked <= seconds[1]
    assert raised.value.reason == ("server-error" if seconds is None else "rate-limited")


def test_operators_can_be_reached(server):
    server.pages["/"] = Page("x")
    scanned(web(server, contact="mailto:web@example.org"))
    agents = {each.headers["User-Agent"] for each in server.asked}
    assert len(agents) == 1
    assert agents.pop().startswith("Parquetry/")
    assert server.asked[0].headers["User-Agent"].endswith(" (+mailto:web@example.org)")


def test_url_is_the_source_that_has_it_and_any_other_one_of_its_own():
    settings = parse_settings({"source": [{"name": "site", "uri": "https://example.org/"}]}, "test")
    targets = ("https://example.org", "https://example.org/", "https://example.org/guide")
    scopes = [scopes_of(settings, (target,))[0] for target in targets]
    assert [(scope.name, scope.prefix) for scope in scopes] == [
        ("site", ""),
        ("site", ""),
        ("https://example.org/guide", ""),
    ]


# --- safety


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]"]
)
def test_place_that_is_plainly_inside_is_refused_before_anything_is_asked(host):
    with pytest.raises(SettingsError, match=r"source site: .* is .*; if that is meant, add .* to allow in \[source"):
        open_place(Place("site", f"http://{host}/"))


@pytest.mark.parametrize(
    ("uri", "options", "problem"),
    [
        ("http://user:secret@example.org/", {}, "holds credentials"),
        ("https://example.org/", {"urls": ["https://example.org/?sig=secret"]}, "holds credentials"),
        ("http://example.org:22/", {}, None),
        ("https://example.org/", {"urls": ["ftp://example.org/"]}, "not an address of the web"),
        ("https://example.org/", {"allow": ["http://x"]}, "allow: 'http://x' is not a host"),
        ("https://example.org/", {"alow": []}, "did you mean allow"),
        ("https://example.org/", {"contact": "a b"}, "contact"),
    ],
)
def test_unusable_settings_are_told(uri, options, problem):
    if problem is None:
        open_place(Place("site", uri, options=options))
        return
    with pytest.raises(SettingsError, match=problem) as raised:
        open_place(Place("site", uri, options=options))
    assert "secret" not in str(raised.value)


def test_entry_of_a_listing_that_leads_inside_is_not_connected_to(server):
    with RawServer() as canary:
        lines = [canary.url + "/", f"http://localhost:{canary.port}/", f"http://0x7f.1:{canary.port}/"]
        server.pages["/l"] = Page("\n".join(lines))
        found = list(web(server, "/l").scan(""))
        assert [item.etag for item in found] == ["refused:forbidden-address"] * 3
        assert canary.connections == 0
