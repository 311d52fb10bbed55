"""Pages of the web as documents: what is listed, what is asked for, and what is never taken for gone."""

import gzip
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from records import row
from servers.web_server import Page, RawServer, WebServer

from knowledge import ids
from knowledge.errors import BrokenDocument, SettingsError, SkippedDocument, TransientError
from knowledge.extract.detect import detect
from knowledge.model import Access, Item, Unlisted
from knowledge.rate import Turns
from knowledge.settings import parse_settings
from knowledge.sources import web as web_module
from knowledge.sources.base import Hashing, Place, Remembering
from knowledge.sources.providers import open_place
from knowledge.sources.registry import scopes_of
from knowledge.web.addresses import parse_allowed
from knowledge.web.client import GuardedClient
from knowledge.web.pace import Pace
from knowledge.web.visitor import Visitor

HTML = "<!doctype html><title>{0}</title><p>About {0}."


@pytest.fixture
def server():
    with WebServer() as server:
        yield server


def web(server, path="/", include=(), exclude=(), **options):
    options = {"allow": [server.place], "requests_per_second": 1000, **options}
    return open_place(
        Place("site", server.url + path, Access(tags=("t",)), include=include, exclude=exclude, options=options)
    )


def scanned(source):
    found = list(source.scan(""))
    items = {each.path.partition("/")[2]: each for each in found if isinstance(each, Item)}
    return items, [each for each in found if isinstance(each, Unlisted)]


def rows_of(items):
    """What is published after a refresh that took these items."""
    return {
        item.path: row(item.path, uri=item.uri, size=item.size, etag=item.etag, modified_at=item.modified_at)
        for item in items.values()
    }


def refreshed(source, server, items):
    """The same source, which now knows what it listed."""
    source.remember(rows_of(items))
    server.asked.clear()
    return source


def sitemap(server, *entries):
    urls = "".join(
        f"<url><loc>{server.url}{path}</loc>{f'<lastmod>{modified}</lastmod>' if modified else ''}</url>"
        for path, modified in entries
    )
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'


# --- one page


def test_single_page_is_one_document_and_is_asked_for_once(server):
    server.pages["/"] = Page(HTML.format("Home"), etag='"1"', modified="Tue, 03 Feb 2026 10:00:00 GMT")
    source = web(server)
    assert isinstance(source, Hashing)
    assert isinstance(source, Remembering)
    items, unlisted = scanned(source)
    (item,) = items.values()
    assert (item.path, item.uri, item.etag, item.size, item.access) == (
        f"{server.place}/index.html", f"{server.url}/", 'etag:"1"', 48, Access(tags=("t",)),
    )  # fmt: skip
    assert item.modified_at == datetime(2026, 2, 3, 10, tzinfo=UTC)
    assert unlisted == []
    assert source.fetch(item) == (item, HTML.format("Home").encode())
    assert server.paths() == ["/"], "what was read while listing is not asked for again"


def test_page_read_a_second_time_is_asked_for_again(server):
    server.pages["/"] = Page("one", etag='"1"')
    source = web(server)
    (item,) = scanned(source)[0].values()
    source.fetch(item)
    server.pages["/"] = Page("two!", etag='"2"')
    again, content = source.fetch(item)
    assert (again.etag, again.size, content) == ('etag:"2"', 4, b"two!")


@pytest.mark.parametrize(
    ("page", "header"),
    [
        (Page("text", etag='W/"weak"'), ("If-None-Match", 'W/"weak"')),
        (
            Page("text", modified="Tue, 03 Feb 2026 10:00:00 GMT"),
            ("If-Modified-Since", "Tue, 03 Feb 2026 10:00:00 GMT"),
        ),
    ],
    ids=["etag", "last-modified"],
)
def test_unchanged_page_is_not_sent_again(server, page, header):
    server.pages["/"] = page
    source = web(server)
    first, _ = scanned(source)
    again, _ = scanned(refreshed(source, server, first))
    assert again == first
    (asked,) = (each for each in server.asked if each.path == "/")
    assert (asked.status, asked.headers[header[0]]) == (304, header[1])


def test_page_without_validators_is_told_by_its_content(server):
    server.pages["/"] = Page("text")
    source = web(server)
    first, _ = scanned(source)
    assert first["index.html"].etag == f"content:{ids.content_hash(b'text')}"
    assert scanned(refreshed(source, server, first))[0]["index.html"].etag == first["index.html"].etag
    server.pages["/"] = Page("new text")
    assert scanned(source)[0]["index.html"].etag != first["index.html"].etag


def test_content_read_while_listing_tells_what_was_only_touched(server):
    server.pages["/"] = Page("text", etag='"1"')
    source = web(server)
    first, _ = scanned(source)
    server.pages["/"] = Page("text", etag='"2"')
    again, _ = scanned(refreshed(source, server, first))
    assert again["index.html"].etag == 'etag:"2"'
    assert source.hash(again["index.html"].path) == ids.content_hash(b"text")
    with pytest.raises(FileNotFoundError):
        source.hash("never/read")


def test_page_that_is_gone_is_not_listed_once_it_was_known(server):
    server.pages["/a"] = Page("text")
    source = web(server, "/a")
    first, _ = scanned(source)
    server.pages.clear()
    assert scanned(refreshed(source, server, first)) == ({}, [])
    with pytest.raises(FileNotFoundError):
        source.fetch(replace(first["a"], etag="other"))


def test_address_that_never_was_there_is_told(server):
    (unlisted,) = scanned(web(server, "/typo"))[1]
    assert unlisted == Unlisted("", f"{server.url}/typo is not there; correct its address")


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
def test_page_that_fails_is_never_gone(server, status):
    server.pages["/"] = Page("text")
    source = web(server)
    (item,) = scanned(source)[0].values()
    source.fetch(item)
    server.pages["/"] = Page("sorry", status)
    with pytest.raises(TransientError, match=str(status)):
        list(refreshed(source, server, {"index.html": item}).scan(""))
    with pytest.raises(TransientError, match=str(status)):
        source.fetch(item)


def test_server_that_asks_to_be_left_alone_is(server):
    server.pages["/"] = Page("later", 503, {"Retry-After": "3000"})
    source = web(server)
    for _ in range(2):
        with pytest.raises(TransientError) as raised:
            list(source.scan(""))
        assert raised.value.reason == "rate-limited"
        assert 2990 < raised.value.retry_after <= 3000
    assert server.paths() == ["/"]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Page("no", 403), "forbidden"),
        (Page("no", 401), "forbidden"),
        (Page("no", 418), "unexpected-answer"),
        (Page("", 302, {"Location": "http://10.0.0.1/"}), "forbidden-address"),
        (Page("x", headers={"Content-Encoding": "br"}), "unsupported-encoding"),
    ],
    ids=["403", "401", "418", "redirect-inside", "encoding"],
)
def test_page_that_is_refused_is_listed_and_fails_when_it_is_read(server, page, reason):
    server.pages |= {"/urls.txt": Page(f"{server.url}/a\n{server.url}/b\n"), "/a": Page("text"), "/b": page}
    source = web(server, "/urls.txt")
    items, unlisted = scanned(source)
    assert (sorted(items), unlisted) == (["a", "b"], [])
    assert items["b"].etag == f"refused:{reason}"
    with pytest.raises(BrokenDocument) as raised:
        source.fetch(items["b"])
    assert raised.value.reason == reason


def test_text_in_another_encoding_is_read_as_the_server_says(server):
    text = "Прайс-лист"
    server.pages["/"] = Page(text.encode("koi8-r"), headers={"Content-Type": "text/html; charset=KOI8-R"})
    source = web(server)
    (item,) = scanned(source)[0].values()
    assert source.fetch(item)[1].decode("utf-8-sig") == text
    server.pages["/"] = Page(b"%PDF-1.7 \xff\x00", headers={"Content-Type": "text/html; charset=latin1"})
    assert source.fetch(item)[1] == b"%PDF-1.7 \xff\x00"


def test_fragment_is_a_page_where_the_server_says_so(server):
    fragment = b"<p>First.<br>Second."
    server.pages["/about"] = Page(fragment, headers={"Content-Type": "text/html"})
    source = web(server, "/about")
    (item,) = scanned(source)[0].values()
    content = source.fetch(item)[1]
    assert content == b"<!doctype html>" + fragment
    assert detect(content, "about") == "text/html"
    server.pages["/about"] = Page(b"a < b", headers={"Content-Type": "text/plain"})
    assert source.fetch(item)[1] == b"a < b"


def test_token_that_is_the_same_is_believed_where_conditions_are_not_understood(server):
    server.pages["/"] = Page("text", headers={"ETag": '"1"'})
    source = web(server)
    first, _ = scanned(source)
    server.pages["/"] = Page("TEXT TEXT", headers={"ETag": '"1"'})
    again, _ = scanned(refreshed(source, server, first))
    assert (again["index.html"].etag, again["index.html"].size) == ('etag:"1"', 4)


def test_large_page_is_read_only_when_it_is_needed(server):
    server.pages |= {"/l": Page(f"{server.url}/a"), "/a": Page(bytes(9 << 20), etag='"1"')}
    source = web(server, "/l")
    (item,) = scanned(source)[0].values()
    assert (item.size, item.etag) == (9 << 20, 'etag:"1"')
    with pytest.raises(FileNotFoundError):
        source.hash(item.path)
    assert len(source.fetch(item)[1]) == 9 << 20
    assert server.paths() == ["/l", "/a", "/a"]


def test_more_than_fits_in_memory_is_asked_for_again(server, monkeypatch):
    monkeypatch.setattr(web_module, "_KEPT_BYTES", 10)
    server.pages |= {f"/{name}": Page("sixsix", etag='"1"') for name in "abc"}
    server.pages["/l"] = Page("".join(f"{server.url}/{name}\n" for name in "abc"))
    source = web(server, "/l")
    items, _ = scanned(source)
    server.asked.clear()
    assert [source.fetch(item)[1] for item in items.values()] == [b"sixsix"] * 3
    assert len(server.paths()) == 2


def test_page_whose_content_is_known_is_not_kept(server):
    server.pages["/"] = Page("text", etag='"1"')
    source = web(server)
    first, _ = scanned(source)
    known = {path: replace(each, content_hash=ids.content_hash(b"text")) for path, each in rows_of(first).items()}
    source.remember(known)
    server.pages["/"] = Page("text", etag='"2"')
    (item,) = scanned(source)[0].values()
    server.asked.clear()
    source.fetch(item)
    assert server.paths() == ["/"]


def test_pages_are_read_by_several_threads_at_a_time(server):
    server.pages |= {f"/{number}": Page(f"{number}" * 1000, etag='"1"') for number in range(24)}
    server.pages["/l"] = Page("".join(f"{server.url}/{number}\n" for number in range(24)))
    source = web(server, "/l")
    items, _ = scanned(source)
    for _ in range(2):
        with ThreadPoolExecutor(8) as threads:
            read = dict(zip(items, threads.map(source.fetch, items.values()), strict=True))
        assert {name: content for name, (_, content) in read.items()} == {
            str(number): f"{number}".encode() * 1000 for number in range(24)
        }


def test_part_of_a_source_is_what_the_whole_lists_there(server):
    names = ("a", "docs/b", "docs/deep/c", "docsx")
    server.pages |= {f"/{name}": Page(name) for name in names}
    server.pages["/l"] = Page("".join(f"{server.url}/{name}\n" for name in names))
    source = web(server, "/l")
    part = [item.path.partition("/")[2] for item in source.scan(f"{server.place}/docs/")]
    assert sorted(part) == ["docs/b", "docs/deep/c"]
    assert "/a" not in server.paths()
    single = web(server, "/a")
    assert [list(single.scan(prefix)) for prefix in ("elsewhere", f"{server.place}/a/b")] == [[], []]


def test_hostile_names_are_listed_and_read_as_they_are(server):
    names = [
        "ü%20x",
        "%E6%97%A5",
        "100%25.md",
        "a%2Fb",
        "a%23b",
        "a%3Fb",
        "a%5Cb",
        "b..%2Fup",
        "a%0Ab",
        "a'\"<b>",
        "~tilde",
        "*",
    ]
    paths = ["/" + str(httpx.URL(f"http://x/{name}").raw_path, "ascii")[1:] for name in names]
    server.pages |= {path: Page(path) for path in paths}
    server.pages["/l"] = Page("".join(f"{server.url}/{name}\n" for name in names))
    source = web(server, "/l")
    items, unlisted = scanned(source)
    assert (len(items), unlisted) == (len(names), [])
    assert sorted(source.fetch(item)[1].decode() for item in items.values()) == sorted(paths)


# --- lists, sitemaps, feeds


def test_list_of_urls_names_documents(server):
    lines = f"# ours\n\n{server.url}/a\n{server.url}/b?x=1\n{server.url}/a#part\n{server.url}/gone\n"
    server.pages |= {"/urls.txt": Page(lines), "/a": Page("a"), "/b?x=1": Page("b")}
    items, unlisted = scanned(web(server, "/urls.txt"))
    assert (sorted(items), unlisted) == (["a", "b?x=1"], [])


def test_settings_may_name_more_addresses(server):
    server.pages |= {"/a": Page("a"), "/more.txt": Page(f"{server.url}/b"), "/b": Page("b")}
    items, _ = scanned(web(server, "/a", urls=[f"{server.url}/more.txt"]))
    assert sorted(items) == ["a", "b"]


def test_sitemap_that_says_when_pages_changed_spares_asking_for_them(server):
    server.pages |= {
        "/sitemap.xml": Page(sitemap(server, ("/a", "2026-01-31"), ("/b", "2026-01-31T10:00:00+02:00"), ("/c", None))),
        **{path: Page(path) for path in ("/a", "/b", "/c")},
    }
    source = web(server, "/sitemap.xml")
    items, unlisted = scanned(source)
    assert unlisted == []
    assert {name: item.etag for name, item in items.items()} == {
        "a": "lastmod:2026-01-31T00:00:00+00:00",
        "b": "lastmod:2026-01-31T08:00:00+00:00",
        "c": f"content:{ids.content_hash(b'/c')}",
    }
    assert server.paths() == ["/sitemap.xml", "/c"]
    fetched, content = source.fetch(items["a"])
    assert (fetched, content) == (replace(items["a"], size=2), b"/a")
    again, _ = scanned(refreshed(source, server, {**items, "a": fetched}))
    assert (again["a"], again["b"]) == (fetched, items["b"])


def test_page_that_changed_today_is_read_again_when_the_day_is_over(server):
    now = datetime.now(UTC)
    dates = {"/a": now.date(), "/b": (now - timedelta(days=3)).date(), "/c": now}
    server.pages["/sitemap.xml"] = Page(sitemap(server, *((path, date.isoformat()) for path, date in dates.items())))
    items, _ = scanned(web(server, "/sitemap.xml"))
    assert {name: item.etag.endswith("?") for name, item in items.items()} == {"a": True, "b": False, "c": False}


def test_sitemaps_of_sitemaps_are_followed_packed_or_not(server):
    index = f"<sitemapindex><sitemap><loc>{server.url}/one.xml.gz</loc></sitemap><sitemap><loc>/two.xml</loc></sitemap>"
    server.pages |= {
        "/sitemap.xml": Page(index + "</sitemapindex>"),
        "/one.xml.gz": Page(gzip.compress(sitemap(server, ("/a", "2026-01-01")).encode())),
        "/two.xml": Page(sitemap(server, ("/b", "2026-01-01"), ("/a", "2026-01-01"))),
    }
    items, unlisted = scanned(web(server, "/sitemap.xml"))
    assert (sorted(items), unlisted) == (["a", "b"], [])


@pytest.mark.parametrize(
    "broken",
    [
        Page("gone", 404),
        Page("no", 403),
        Page("<urlset><url><loc>/b</loc><lastmod>2026-01-01</lastmod></url><url>"),
        Page("<!DOCTYPE a [<!ENTITY b 'c'>]><urlset><url><loc>&b;</loc></url></urlset>"),
        Page("", 302, {"Location": "http://169.254.169.254/"}),
    ],
    ids=["404", "403", "cut", "entities", "redirect-inside"],
)
def test_sitemap_that_cannot_be_read_whole_leaves_the_listing_incomplete(server, broken):
    index = "<sitemapindex><sitemap><loc>/one.xml</loc></sitemap><sitemap><loc>/two.xml</loc></sitemap></sitemapindex>"
    server.pages |= {"/sitemap.xml": Page(index), "/two.xml": Page(sitemap(server, ("/b", "2026-01-01")))}
    server.pages["/one.xml"] = broken
    items, unlisted = scanned(web(server, "/sitemap.xml"))
    assert sorted(items) == ["b"]
    assert [(each.path, "/one.xml" in each.detail) for each in unlisted] == [("", True)]


@pytest.mark.parametrize("broken", [Page("down", 500), Page(gzip.compress(b"<urlset>")[:-9])], ids=["500", "cut-gzip"])
def test_sitemap_that_may_be_whole_later_breaks_the_listing_off(server, broken):
    server.pages |= {
        "/sitemap.xml": Page("<sitemapindex><sitemap><loc>/one.xml</loc></sitemap></sitemapindex>"),
        "/one.xml": broken,
    }
    with pytest.raises(TransientError, match=r"/one\.xml"):
        list(web(server, "/sitemap.xml").scan(""))


def test_sitemaps_nested_too_deep_or_too_many_leave_the_listing_incomplete(server):
    def index(*paths):
        return Page(
            f"<sitemapindex>{''.join(f'<sitemap><loc>{path}</loc></sitemap>' for path in paths)}</sitemapindex>"
        )

    server.pages |= {"/sitemap.xml": index("/1"), "/1": index("/2"), "/2": index("/3", "/1"), "/3": index("/4")}
    _, unlisted = scanned(web(server, "/sitemap.xml"))
    assert [each.detail.partition(" is ")[0] for each in unlisted] == [f"{server.url}/3", f"{server.url}/1"]
    assert server.paths() == ["/sitemap.xml", "/1", "/2"]
    server.pages["/sitemap.xml"] = index(*(f"/{number}" for number in range(9)))
    _, unlisted = scanned(web(server, "/sitemap.xml", max_pages=5))
    assert "names more than 5 pages" in unlisted[0].detail


def test_maintenance_page_in_place_of_a_sitemap_removes_nothing(server):
    server.pages["/sitemap.xml"] = Page(sitemap(server, ("/a", "2026-01-01"), ("/b", "2026-01-01")))
    source = web(server, "/sitemap.xml")
    items, _ = scanned(source)
    server.pages["/sitemap.xml"] = Page(HTML.format("We are back soon"))
    found, (unlisted,) = scanned(refreshed(source, server, items))
    assert found == {}
    assert 'is a page, where a list of pages was; if that is meant, set kind = "page"' in unlisted.detail


def test_listing_beyond_the_limit_is_incomplete(server):
    server.pages["/sitemap.xml"] = Page(sitemap(server, *((f"/{n}", "2026-01-01") for n in range(9))))
    items, (unlisted,) = scanned(web(server, "/sitemap.xml", max_pages=5))
    assert len(items) >= 5
    assert "names more than 5 pages (max_pages)" in unlisted.detail


RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>/</link>{0}</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="/self" rel="self"/>
<entry><link rel="edit" href="/edit"/><link href="/a"/><updated>2026-02-03T04:05:06Z</updated></entry>
<entry><link rel="alternate" href="b?x=1&amp;y=2"/></entry></feed>"""


def test_feed_names_documents(server):
    items = (
        "<item><link>{0}/a</link><pubDate>Tue, 03 Feb 2026 10:00:00 GMT</pubDate></item><item><guid>{0}/b</guid></item>"
    )
    server.pages |= {
        "/rss": Page(RSS.format(items.format(server.url))),
        "/feeds/atom": Page(ATOM),
        **{path: Page(path) for path in ("/a", "/b", "/feeds/b?x=1&y=2")},
    }
    assert sorted(scanned(web(server, "/rss"))[0]) == ["a", "b"]
    found, _ = scanned(web(server, "/feeds/atom"))
    assert sorted(found) == ["a", "feeds/b?x=1&y=2"]
    assert found["a"].etag == "lastmod:2026-02-03T04:05:06+00:00"


def test_entry_that_left_a_feed_stays_until_its_page_is_gone(server):
    def feed(*paths):
        return Page(RSS.format("".join(f"<item><link>{server.url}{path}</link></item>" for path in paths)))

    server.pages |= {"/rss": feed("/a", "/b", "/c"), **{path: Page(path, etag='"1"') for path in ("/a", "/b", "/c")}}
    source = web(server, "/rss")
    items, _ = scanned(source)
    server.pages["/rss"] = feed("/c")
    del server.pages["/b"]
    again, unlisted = scanned(refreshed(source, server, items))
    assert (sorted(again), unlisted) == (["a", "c"], [])
    assert again["a"] == items["a"]


def test_feed_as_one_document_where_the_settings_say_so(server):
    server.pages["/rss"] = Page(RSS.format("<item><link>/a</link></item>"))
    assert sorted(scanned(web(server, "/rss", kind="page"))[0]) == ["rss"]


def test_address_in_a_listing_that_is_none_is_a_refused_document(server):
    server.pages["/rss"] = Page(RSS.format("<item><link>mailto:a@b.example</link></item>"))
    source = web(server, "/rss")
    (item,) = (each for each in source.scan("") if isinstance(each, Item))
    assert (item.path, item.etag) == ("mailto:a@b.example", "refused:bad-url")
    with pytest.raises(BrokenDocument, match="not an address of the web"):
        source.fetch(item)


def test_pages_that_are_not_wanted_are_not_asked_for(server):
    paths = ("/a.html", "/docs/b.html", "/docs/drafts/c.html")
    server.pages |= {"/l": Page("\n".join(server.url + path for path in paths)), **{path: Page("x") for path in paths}}
    items, _ = scanned(web(server, "/l", include=["*/docs/**"], exclude=["drafts/"]))
    assert sorted(items) == ["docs/b.html"]
    assert server.paths() == ["/l", "/docs/b.html"]


def test_host_that_keeps_failing_is_given_up_and_the_others_are_not(server):
    with WebServer({f"/{n}": Page("down", 500) for n in range(50)}) as down:
        lines = [f"{down.url}/{n}" for n in range(50)] + [f"{server.url}/a"]
        server.pages |= {"/l": Page("\n".join(lines)), "/a": Page("a")}
        items, unlisted = scanned(web(server, "/l", allow=["127.0.0.1"]))
        assert len(down.paths()) < 20
    assert sorted(items) == ["a"]
    assert 3 <= len(unlisted) < 20
    assert sum("its other pages were not asked" in each.detail for each in unlisted) == 1


def test_host_that_fails_now_and_then_is_not_given_up(server, monkeypatch):
    monkeypatch.setattr(web_module, "_AT_ONCE", 1)
    pages = {f"/{n}": Page("down", 500) if n % 3 else Page("up") for n in range(60)}
    server.pages |= {**pages, "/l": Page("".join(f"{server.url}{path}\n" for path in pages))}
    items, unlisted = scanned(web(server, "/l"))
    assert (len(items), len(unlisted)) == (20, 40)


# --- manners


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
    visitor = Visitor(client, 2.0, Pace(Turns(now=lambda: 0.0)))
    visitor._pause = slept.append
    for path in ("/a", "/b"):
        with visitor.visit(server.url + path) as answer:
            assert answer.status == 200
    assert [seconds for seconds in slept if seconds] == [7.0]


def test_listing_that_nobody_wants_any_more_does_not_sit_out_its_turns(server):
    """Without that, an interrupted run would end after a hundred seconds and more."""
    server.pages["/s"] = Page(sitemap(server, ("/dated", "2026-01-01"), *((f"/{n}", None) for n in range(20))))
    listing = web(server, "/s", requests_per_second=0.01).scan("")
    assert next(listing).path.endswith("/dated")
    listing.close()
    assert server.paths() == ["/s"]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", (120, 120)),
        (format_datetime(datetime.now(UTC) + timedelta(seconds=3000), usegmt=True), (2000, 3000)),
        ("Tue, 03 Feb 2026 10:00:00 GMT", (0, 0)),
        ("soon", None),
        ("-5", None),
    ],
    ids=["seconds", "date to come", "date gone by", "word", "less than nothing"],
)
def test_wish_to_be_left_alone_is_understood(header, seconds):
    page = Page("later", 503, {"Retry-After": header})
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
        ("http://user:secret@example.org/", {}, "user name or password is not asked"),
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
