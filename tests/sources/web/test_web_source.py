"""Web pages as documents: listed pages, requests, and pages that are never removed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest

from parquetry import ids
from parquetry.errors import BrokenDocument, TransientError
from parquetry.extract.detect import detect
from parquetry.model import Access, Unlisted
from parquetry.sources.base import Hashing, Remembering
from parquetry.sources.web import source as web_module
from tests.servers.web_server import Page
from tests.sources.web_shelf import HTML, refreshed, rows_of, scanned, web


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
