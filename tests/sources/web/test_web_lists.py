"""URL lists, sitemaps and feeds: the pages they name are listed, and pages they hide are never removed."""

import gzip
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from parquetry import ids
from parquetry.errors import BrokenDocument, TransientError
from parquetry.model import Item
from parquetry.sources.web import source as web_module
from tests.servers.web_server import Page, WebServer
from tests.sources.web_shelf import HTML, refreshed, scanned, sitemap, web


def test_list_of_urls_names_documents(server):
    lines = f"# ours\n\n{server.url}/a\n{server.url}/b?x=1\n{server.url}/a#part\n{server.url}/gone\n"
    server.pages |= {"/urls.txt": Page(lines), "/a": Page("a"), "/b?x=1": Page("b")}
    items, unlisted = scanned(web(server, "/urls.txt"))
    assert (sorted(items), unlisted) == (["a", "b?x=1"], [])


def test_address_with_credentials_is_neither_asked_nor_told(server):
    signed = [f"{server.url}/a?sig=swordfish", server.url.replace("://", "://reader:swordfish@") + "/a"]
    server.pages |= {"/urls.txt": Page("\n".join(signed)), "/a?sig=swordfish": Page("a"), "/a?sig=***": Page("a")}
    source = web(server, "/urls.txt")
    items = list(source.scan(""))
    assert [item.etag for item in items] == ["refused:bad-url"] * 2
    assert "swordfish" not in repr(items)
    for item in items:
        with pytest.raises(BrokenDocument, match="holds credentials"):
            source.fetch(item)
    assert server.paths() == ["/urls.txt"]


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
