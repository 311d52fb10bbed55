"""A rehash reads every byte of every kind of source: it finds changes hidden from change tokens, and only those."""

import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import pytest

from parquetry.errors import TransientError
from parquetry.sources import providers
from parquetry.sources.youtube import source as youtube
from parquetry.storage.lake.current import current_rows
from parquetry.tasks.engine import retries
from tests import shelf_source
from tests.opened_files import opened_in
from tests.servers.web_server import Page, WebServer
from tests.servers.youtube import Video, YouTube
from tests.shelf_source import SHELVES, ShelfSource
from tests.sources.shelves import KINDS, shelf_of

pytestmark = pytest.mark.slow

BEFORE, AFTER = b"The crane stands in hall two.\n", b"The ferry stands in hall two.\n"


@pytest.fixture
def shelf(request, workshop, monkeypatch):
    with ExitStack() as stack:
        shelf = shelf_of(request.param, monkeypatch, stack, workshop.folder, request.getfixturevalue)
        workshop.sections["source"] = {"uri": shelf.root, "options": dict(shelf.options)}
        yield shelf


def become(workshop, name):
    """Store a document's current tokens, as if its source did not report the last change."""
    (source,) = workshop.plan().sources
    items = {change.item.path: change.item for change in source.changes if change.item}
    lake = workshop.lake
    (path,) = [path for path in items if path.endswith(name)]
    (row,) = [row for row in current_rows(lake.snapshot()) if row.path == path]
    lake.publish(lake.snapshot(), [replace(row, etag=items[path].etag, modified_at=items[path].modified_at)], "forged")


def done(report):
    counts = {name: count for name, count in report.documents.as_dict().items() if count}
    return counts, report.work.chunks_embedded


@pytest.mark.parametrize("shelf", KINDS, indirect=True)
def test_what_no_token_tells_is_found_by_its_bytes(workshop, shelf):
    shelf.put("a.md", BEFORE)
    shelf.put("b.md", b"The shed is empty.\n")
    assert done(workshop.refresh()) == ({"scanned": 2, "added": 2}, 2)
    shelf.put("a.md", AFTER)
    become(workshop, "a.md")
    version = workshop.refresh().version
    assert [hit.row["text"] for hit in workshop.search("crane in hall two", k=1).hits] == [BEFORE.decode().strip()]
    (planned,) = workshop.plan(rehash=True).sources
    assert [change.reason for change in planned.changes if change.effort != "nothing"] == ["content changed"]
    report = workshop.refresh(rehash=True)
    assert done(report) == ({"scanned": 2, "changed": 1, "unchanged": 1}, 1)
    assert [hit.row["text"] for hit in workshop.search("ferry in hall two", k=1).hits] == [AFTER.decode().strip()]
    again = workshop.refresh(rehash=True)
    assert (done(again), again.version) == (({"scanned": 2, "unchanged": 2}, 0), version + 1)


# --- documents fetched one by one


@pytest.fixture
def lying(workshop, monkeypatch):
    """A source with change tokens that never change."""

    class Lying(ShelfSource):
        def _item(self, path):
            return replace(super()._item(path), etag="always")

    monkeypatch.setitem(providers.BUILT_IN, "shelf", f"{shelf_source.__name__}:open_shelf")
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    source = Lying(**{f"{number}__md": f"Rule {number}: count twice." for number in range(40)})
    SHELVES["lying"] = source
    workshop.sections["source"] = {"uri": "shelf://lying"}
    workshop.sections["refresh"] = {"attempts": 2}
    workshop.refresh()
    source.fetched.clear()
    yield source
    SHELVES.clear()


def test_documents_are_read_once_and_several_at_a_time_and_a_changed_one_again(workshop, lying):
    lying.contents["7.md"] = "Rule 7: count three times."
    assert done(workshop.refresh()) == ({"scanned": 40, "unchanged": 40}, 0)
    assert lying.fetched == []
    assert done(workshop.refresh(rehash=True)) == ({"scanned": 40, "changed": 1, "unchanged": 39}, 1)
    assert Counter(lying.fetched) == Counter({path: 1 + (path == "7.md") for path in lying.contents})
    together = threading.Barrier(4, timeout=120)
    lying.before_fetch = lambda _: together.wait()
    assert workshop.plan(rehash=True).sources[0].unchanged == 0
    assert lying.most_at_work >= 4


def test_document_that_fails_in_passing_is_asked_for_again(workshop, lying):
    lying.fetch_failures["7.md"] = [TransientError("unreachable", "no answer")]
    report = workshop.refresh(rehash=True)
    assert (done(report), report.retries) == (({"scanned": 40, "unchanged": 40}, 0), 1)


def test_document_that_cannot_be_read_keeps_its_last_good_revision_and_is_told(workshop, lying):
    lying.fetch_failures["7.md"] = [TransientError("unreachable", "no answer")] * 4
    report = workshop.refresh(rehash=True)
    assert done(report) == ({"scanned": 40, "unchanged": 39, "failed": 1}, 0)
    assert [(failure.stage, failure.reason) for failure in report.failures] == [("fetch", "unreachable")]
    assert workshop.search("Rule 7", mode="text").hits
    lying.fetched.clear()
    assert done(workshop.refresh()) == ({"scanned": 40, "changed": 1, "unchanged": 39}, 0)
    assert lying.fetched == ["7.md"]


def test_new_tokens_of_the_same_bytes_are_stored_and_nothing_is_made_anew(workshop, lying):
    """A bucket was copied to another one."""
    type(lying)._item = lambda self, path: replace(ShelfSource._item(self, path), etag="other")
    report = workshop.refresh(rehash=True)
    assert (done(report), report.work.chunks_written) == (({"scanned": 40, "unchanged": 40}, 0), 0)
    lying.fetched.clear()
    assert workshop.refresh().version == report.version
    assert lying.fetched == []


# --- the web


@pytest.fixture
def site(workshop):
    with WebServer() as server:
        options = {"allow": [server.place], "requests_per_second": 1000}
        workshop.sections["source"] = {"uri": f"{server.url}/list", "options": options}
        yield server


def html(text):
    return f"<!doctype html><title>t</title><main><p>{text}</main>"


def test_pages_whose_sitemap_keeps_silent_are_asked_for(workshop, site):
    entry = f"<url><loc>{site.url}/a</loc><lastmod>2026-01-01T00:00:00Z</lastmod></url>"
    listing = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entry}</urlset>'
    site.pages |= {"/list": Page(listing), "/a": Page(html("Paid on the 25th."))}
    assert done(workshop.refresh()) == ({"scanned": 1, "added": 1}, 1)
    site.pages["/a"] = Page(html("Paid on the 27th."))
    site.paths()
    assert done(workshop.refresh()) == ({"scanned": 1, "unchanged": 1}, 0)
    assert site.paths() == ["/list"]
    assert done(workshop.refresh(rehash=True)) == ({"scanned": 1, "changed": 1}, 1)
    assert done(workshop.refresh(rehash=True)) == ({"scanned": 1, "unchanged": 1}, 0)


def test_pages_that_a_feed_named_before_stay(workshop, site):
    """The source knows the published documents; otherwise they would be removed."""

    def feed(*names):
        entries = "".join(f"<item><link>{site.url}/{name}</link></item>" for name in names)
        return Page(f'<rss version="2.0"><channel><title>t</title>{entries}</channel></rss>')

    for name in "ab":
        site.pages[f"/{name}"] = Page(html(f"News of {name}."), etag=f'"{name}"')
    site.pages["/list"] = feed("a", "b")
    assert done(workshop.refresh()) == ({"scanned": 2, "added": 2}, 2)
    site.pages["/list"] = feed("b")
    site.pages["/a"] = Page(html("Old news of a."), etag='"a"')
    assert done(workshop.refresh()) == ({"scanned": 2, "unchanged": 2}, 0)
    site.paths()
    assert done(workshop.refresh(rehash=True)) == ({"scanned": 2, "changed": 1, "unchanged": 1}, 1)
    assert sorted(site.paths()) == ["/a", "/b", "/list"]


def test_captions_are_asked_for_once(workshop, monkeypatch):
    """Captions are read during listing, and YouTube blocks clients that send too many requests."""
    monkeypatch.setattr(youtube, "_READ_AHEAD", 0)
    with YouTube() as server:
        monkeypatch.setattr(youtube, "new_session", server.session)
        server.videos["kiln_dries-"] = Video(tracks={"en": [(0.0, "Veneer is pressed at ninety degrees.")]})
        workshop.sections["source"] = {"uri": "https://youtu.be/kiln_dries-"}
        workshop.refresh()
        asked = len(server.asked)
        workshop.refresh()
        once = len(server.asked) - asked
        assert done(workshop.refresh(rehash=True)) == ({"scanned": 1, "unchanged": 1}, 0)
        assert len(server.asked) == asked + 2 * once


# --- documents that are not read


def test_what_was_too_large_to_be_read_is_not_read(workshop):
    workshop.sections["extraction"] = {"workers": 1, "max_bytes": 100}
    workshop.write("large.md", "x" * 101)
    workshop.write("small.md", "About small things.")
    workshop.refresh()
    with opened_in(workshop.folder) as opened:
        report = workshop.refresh(rehash=True)
    assert (done(report), opened) == (({"scanned": 2, "unchanged": 1, "skipped": 1}, 0), ["small.md"])
