"""Documents that list others: detected by content, read in bounded memory, refused when they are traps."""

import gzip
import tracemalloc
from datetime import UTC, datetime

import pytest

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.sources.web import xml_records
from parquetry.sources.web.listings import ListedPage, entries_of, kind_of, unpacked

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (f"<?xml version='1.0'?>\n<!-- made by x --><urlset {NS}/>", "sitemap"),
        ("\ufeff  <urlset/>", "sitemap"),
        (f"<sitemapindex {NS}/>", "sitemap"),
        ("<rss version='2.0'/>", "feed"),
        ('<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://x.invalid/rss.dtd"><rss/>', "feed"),
        ("<feed xmlns='http://www.w3.org/2005/Atom'/>", "feed"),
        ("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>", "feed"),
        ("https://example.org/a\r\nhttp://example.org/b\r\n", "list"),
        ("# ours\nhttps://example.org/a", "list"),
        ("# A page about URLs\n\nhttps://example.org/a is one of them", "page"),
        ("https://example.org/a and more", "page"),
        ("# only remarks", "page"),
        ("<!doctype html><p>https://example.org/", "page"),
        ("<html xmlns='http://www.w3.org/1999/xhtml'/>", "page"),
        ("<svg/>", "page"),
        ("", "page"),
        ("<", "page"),
        ("<urlsetx/>", "page"),
        ("%PDF-1.7", "page"),
    ],
)
def test_content_tells_what_an_address_holds(content, kind):
    assert kind_of(content.encode()) == kind


def entries(content, kind):
    return list(entries_of(content.encode(), kind, "it"))


def test_sitemap_in_any_namespace_names_pages_with_their_dates():
    rows = [
        ("a", "2026-02-03", datetime(2026, 2, 3, tzinfo=UTC), True),
        ("b", "2026-02-03T10:00:00+02:00", datetime(2026, 2, 3, 8, tzinfo=UTC), False),
        ("c", "2026-02-03T10:00:00.123Z", datetime(2026, 2, 3, 10, 0, 0, 123000, tzinfo=UTC), False),
        ("d", "2026-02", None, False),
        ("e", "yesterday", None, False),
        ("f", "0001-01-01T00:00:00+14:00", None, False),
    ]
    for namespace in (NS, 'xmlns="http://www.google.com/schemas/sitemap/0.84"', ""):
        urls = "".join(
            f"<url><image:image xmlns:image='x'><image:loc>no</image:loc></image:image><loc> {loc}\n</loc>"
            f"<lastmod>{date}</lastmod></url>"
            for loc, date, _, _ in rows
        )
        found = entries(f"<urlset {namespace}>{urls}<url/></urlset>", "sitemap")
        assert found == [ListedPage(loc, moment, day) for loc, _, moment, day in rows]


def test_feeds_name_the_page_of_each_entry():
    rss = """<rss><channel><link>no</link><atom:link xmlns:atom="http://www.w3.org/2005/Atom" href="no"/>
    <item><atom:link xmlns:atom="x" rel="enclosure" href="no"/><link>a</link><guid>no</guid></item>
    <item><guid>b</guid></item><item><guid isPermaLink="false">no</guid></item><item><title>no</title></item>
    </channel></rss>"""
    assert [entry.address for entry in entries(rss, "feed")] == ["a", "b"]
    rdf = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
    <channel><link>no</link></channel><item><link>c</link></item></rdf:RDF>"""
    assert [entry.address for entry in entries(rdf, "feed")] == ["c"]


@pytest.mark.parametrize(
    "content",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset><url><loc>&a;</loc></url></urlset>',
        "<urlset><url><loc>a</loc></url>",
        "<urlset><url><loc>a</url></urlset>",
        "not xml",
    ],
    ids=["bomb", "external", "cut", "tangled", "text"],
)
def test_sitemap_that_is_a_trap_or_not_whole_is_refused(content):
    with pytest.raises(BrokenDocument, match="it is not a whole sitemap"):
        entries(content, "sitemap")


def test_pages_named_before_a_listing_breaks_off_are_good():
    found = entries_of(b"<urlset><url><loc>a</loc></url><url>", "sitemap", "it")
    assert next(found).address == "a"
    with pytest.raises(BrokenDocument):
        next(found)


def test_packed_listing_is_unpacked_within_a_limit():
    assert unpacked(gzip.compress(b"<urlset/>"), 99, "it") == b"<urlset/>"
    assert unpacked(b"<urlset/>", 5, "it") == b"<urlset/>"
    with pytest.raises(SkippedDocument):
        unpacked(gzip.compress(bytes(100)), 99, "it")


MANY = 300_000
TRAPS = {
    "elements": ("<urlset>" + "<a/>" * MANY + "</urlset>", "too-many-parts: it is not a whole sitemap"),
    "addresses": ("<urlset><url>" + "<loc>x</loc>" * MANY + "</url></urlset>", "too-many-parts: it is"),
    "nested": ("<urlset>" + "<a>" * MANY + "</a>" * MANY + "</urlset>", "too-deep: its elements"),
    "attributes": (
        "<urlset><a " + " ".join(f'a{n}=""' for n in range(MANY)) + "/></urlset>",
        "damaged: it is .* a tag",
    ),
    "comment": (
        "<urlset><!--" + "x" * 3_000_000 + "--></urlset>",
        "damaged: it is not a whole sitemap: a tag or comment",
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_listing_takes_little_memory_whatever_is_in_it(monkeypatch, trap):
    content, refusal = TRAPS[trap]
    monkeypatch.setattr(xml_records, "MAX_EVENTS", MANY // 2)
    content = content.encode()
    tracemalloc.start()
    try:
        with pytest.raises(BrokenDocument, match=refusal):
            for _ in entries_of(content, "sitemap", "it"):
                pass
        # Memory of the entries found so far, and of the imported library.
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_list_of_many_pages_is_read_line_by_line():
    content = b"http://a/b\r\n# remark\n\n" * 100_000
    tracemalloc.start()
    try:
        assert kind_of(content) == "list"
        assert sum(entry.address == "http://a/b" for entry in entries_of(content, "list", "it")) == 100_000
        assert tracemalloc.get_traced_memory()[1] < 3_500_000
    finally:
        tracemalloc.stop()


def test_pages_named_before_a_limit_are_good():
    listing = b"<urlset><url><loc>a</loc></url>" + b"<b>" * 200
    found = entries_of(listing, "sitemap", "it")
    assert next(found).address == "a"
    with pytest.raises(BrokenDocument, match="too-deep"):
        next(found)


def test_text_of_an_address_ends_where_an_element_begins_in_it():
    assert [entry.address for entry in entries("<urlset><url><loc> a<b/>c</loc></url></urlset>", "sitemap")] == ["a"]
