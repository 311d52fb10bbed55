"""A Vercel Blob store through Vercel's own client: faults of its caches, pages and token."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from parquetry.errors import SettingsError, TransientError
from parquetry.model import Item
from tests.servers.vercel_blob import TOKEN, VercelBlobServer
from tests.sources.cloud_shelves import VercelShelf
from tests.sources.shelf import opened

VERSIONS = {"older": b"the older text", "newest": b"the newer text"}


@pytest.fixture
def shelf(request, monkeypatch):
    with ExitStack() as stack:
        yield VercelShelf(monkeypatch, stack, getattr(request, "param", "public"))


def only(source) -> Item:
    (item,) = source.scan("")
    assert isinstance(item, Item)
    return item


@pytest.mark.parametrize("fault", ["error", "cut", "empty", "repeat"])
def test_listing_whose_second_page_is_wrong_breaks_off(shelf, fault):
    """The client itself takes an empty page for the end, and requests a repeated one for ever."""
    for number in range(7):
        shelf.put(f"{number}.md", b"x")
    shelf.server.page_fault = fault
    found = []
    with pytest.raises(TransientError, match="listing vercel-blob://the shelf broke off"):
        found.extend(shelf.source().scan(""))


def test_pages_of_a_listing_are_put_together(shelf):
    for number in range(10):
        shelf.put(f"{number}.md", b"x")
    assert len(list(shelf.source().scan(""))) == 10


def test_public_blob_of_which_a_cache_holds_an_older_version_is_not_taken_for_the_newest(shelf):
    shelf.put("a.md", VERSIONS["older"])
    older = shelf.server.blobs["the shelf/a.md"]
    shelf.put("a.md", VERSIONS["newest"])
    shelf.server.cached["the shelf/a.md"] = older
    source = shelf.source()
    with pytest.raises(TransientError, match=r"stale: a\.md is not yet given out in its newest version"):
        source.fetch(only(source))
    shelf.server.cached.clear()
    assert source.fetch(only(source))[1] == VERSIONS["newest"]


@pytest.mark.parametrize("shelf", ["private"], indirect=True)
def test_private_blob_is_read_past_the_caches(shelf):
    shelf.put("a.md", VERSIONS["older"])
    older = shelf.server.blobs["the shelf/a.md"]
    shelf.put("a.md", VERSIONS["newest"])
    shelf.server.cached["the shelf/a.md"] = older
    source = shelf.source()
    assert source.fetch(only(source))[1] == VERSIONS["newest"]


@pytest.mark.parametrize(("shelf", "tokens"), [("public", 0), ("private", 1)], indirect=["shelf"])
def test_token_goes_to_the_interface_and_to_the_private_host_of_its_store(shelf, tokens):
    shelf.put("a.md", b"x")
    source = shelf.source()
    source.fetch(only(source))
    given = [seen.authorization for seen in shelf.server.seen if seen.host]
    assert given.count(f"Bearer {TOKEN}") == tokens
    assert len(given) == 1


@pytest.mark.parametrize(
    "url",
    [
        "https://elsewhere.example.com/a.md",
        "https://otherstore.private.blob.vercel-storage.com/the%20shelf/a.md",
        "https://teststore123.private.blob.vercel-storage.com.example.com/the%20shelf/a.md",
    ],
)
def test_token_is_not_sent_to_a_host_that_a_listing_names(shelf, url, monkeypatch):
    shelf.put("a.md", b"x")
    monkeypatch.setattr(VercelBlobServer, "url_of", lambda _, name: url)
    source = shelf.source()
    with pytest.raises(Exception, match=r"refuses its name|Vercel Blob"):
        source.fetch(only(source))
    assert [seen for seen in shelf.server.seen if seen.host] == []


def test_missing_token_says_which_variable_to_set(shelf, monkeypatch):
    monkeypatch.delenv("BLOB_READ_WRITE_TOKEN")
    with pytest.raises(SettingsError, match=r"Missing Blob credentials.*; correct BLOB_READ_WRITE_TOKEN"):
        list(shelf.source().scan(""))


def test_option_that_vercel_blob_does_not_have_is_refused(shelf):
    with pytest.raises(SettingsError, match=r"source shelf: options: .*tokn"):
        opened(shelf.root, tokn="x")


def test_server_of_these_tests_does_what_the_client_expects(shelf):
    """Upload, list, read and delete through the client's own functions."""
    from vercel.api import session
    from vercel.blob import BlobNotFoundError, sync

    with session():
        put = sync.put_blob("own/ä.txt", b"text", access="public")
        assert [blob.pathname for blob in sync.query_blobs(prefix="own/")] == ["own/ä.txt"]
        assert sync.get_blob(put.url, access="public").body == b"text"
        assert sync.head_blob("own/ä.txt").size == 4
        sync.delete_blob(put.url)
        with pytest.raises(BlobNotFoundError):
            sync.head_blob("own/ä.txt")
