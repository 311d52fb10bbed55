"""Listings of a bucket are complete or an error. The server responds as each test defines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.errors import SettingsError, TransientError
from parquetry.model import Item
from parquetry.sources.base import Place
from parquetry.sources.s3 import listing as s3_listing
from parquetry.sources.s3.source import S3Source, open_s3
from tests.servers.listing_server import BUCKET, Answer, ListingServer, Reply, listing_of, page, refusal


@pytest.fixture(scope="module")
def running() -> Iterator[ListingServer]:
    with ListingServer() as server:
        yield server


@pytest.fixture
def server(running: ListingServer) -> ListingServer:
    running.queries.clear()
    return running


@cache
def source(server: ListingServer, folder: str) -> S3Source:
    options = {"endpoint_url": server.url, "anonymous": True, "region": "us-east-1"}
    return open_s3(Place("s3", f"s3://{BUCKET}/{folder}", options=options))


def paths(server: ListingServer, answer: Answer, prefix: str = "", folder: str = "") -> list[str]:
    """Return the paths that a source of the bucket, or of a folder in it, lists."""
    server.answer = answer
    return [found.path for found in source(server, folder).scan(prefix) if isinstance(found, Item)]


def in_turn(*replies: Reply) -> Answer:
    """Give one reply after another; repeat the last one."""
    waiting = list(replies)
    return lambda query: waiting.pop(0) if len(waiting) > 1 else waiting[0]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_listing, "PAGE", 10)


NAMES = st.text(st.sampled_from("ab/-. é\U0001f600\x01%+&<"), min_size=1, max_size=6)


@settings(deadline=None, max_examples=50)
@given(keys=st.sets(NAMES, max_size=30), size=st.integers(1, 7), few=st.integers(0, 4))
def test_every_key_is_listed_once_however_small_the_pages_are(
    running: ListingServer, keys: set[str], size: int, few: int
) -> None:
    """For every mix of shared and separate listing of folders, nothing is missing and nothing comes twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(s3_listing, "PAGE", size)
        patch.setattr(s3_listing, "_FEW_FOLDERS", few)
        assert sorted(paths(running, listing_of(keys))) == sorted(keys)


def test_keys_that_look_like_paths_stay_names(server: ListingServer) -> None:
    keys = {"../up", "a/../b", "./here", "/", "/lead", "a//b", "a/", "back\\slash", "..", "c:\\x", "nul\x00"}
    assert set(paths(server, listing_of(keys))) == keys
    found = list(source(server, "").scan())
    assert all(each.uri.isprintable() for each in found if isinstance(each, Item))


def test_a_prefix_takes_the_object_and_the_folder_of_that_name_and_nothing_else(server: ListingServer) -> None:
    keys = listing_of({"docs/a", "docs/a/b", "docs/a/b/c", "docs/ab", "docs/a.txt", "other"})
    assert sorted(paths(server, keys, "a", "docs")) == ["a", "a/b", "a/b/c"]
    assert sorted(paths(server, keys, "a/b", "docs/")) == ["a/b", "a/b/c"]
    assert paths(server, keys, "a.t", "docs") == []
    assert sorted(paths(server, keys, folder="docs")) == ["a", "a.txt", "a/b", "a/b/c", "ab"]


def test_an_object_and_a_folder_of_one_name_are_told_apart_by_the_operator(server: ListingServer) -> None:
    keys = listing_of({"docs", "docs/a", "docs2/b"})
    with pytest.raises(SettingsError, match=f"s3://{BUCKET}/docs is an object and a folder; write s3://{BUCKET}/docs/"):
        paths(server, keys, folder="docs")
    assert paths(server, keys, folder="docs/") == ["a"]


def test_an_empty_object_that_marks_a_folder_does_not_hide_it(server: ListingServer) -> None:
    keys = listing_of({"docs", "docs/a", "docs/inner/", "docs/inner/b"}, empty={"docs", "docs/inner/"})
    assert sorted(paths(server, keys, folder="docs")) == ["a", "inner/b"]


@pytest.mark.usefixtures("small_pages")
def test_large_folders_are_listed_apart(server: ListingServer) -> None:
    keys = {f"{folder}/{number:03}" for folder in ("north", "south") for number in range(95)}
    assert sorted(paths(server, listing_of(keys))) == sorted(keys)
    assert {query.get("prefix", "") for query in server.queries} == {"", "north/", "south/"}


@pytest.mark.usefixtures("small_pages")
def test_many_small_folders_are_not_asked_for_one_by_one(
    server: ListingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request for each of a million folders would take longer, and cost more, than listing all their objects."""
    monkeypatch.setattr(s3_listing, "_FEW_FOLDERS", 4)
    keys = {f"{number:03}/page" for number in range(200)}
    assert sorted(paths(server, listing_of(keys))) == sorted(keys)
    assert len(server.queries) == 20


@pytest.mark.usefixtures("small_pages")
def test_a_server_that_forgets_folders_is_listed_in_one_go(server: ListingServer) -> None:
    honest = listing_of({f"{folder}/{number}" for folder in "abc" for number in range(20)})

    def forgetful(query: Mapping[str, str]) -> Reply:
        return page([], ["b/"]) if query.get("delimiter") else honest(query)

    assert len(paths(server, forgetful)) == 60


LIES = {
    "an empty answer": (Reply(""), "not a listing"),
    "a page of something else": (Reply("<html><body>Sign in</body></html>"), "not a listing"),
    "an error with status 200": (Reply("<Error><Code>InternalError</Code></Error>"), "InternalError"),
    "more without saying where": (page(["a"], truncated=True), "not how to get it"),
    "fewer keys than counted": (page(["a", "b"], count=3), "counts 3 keys"),
    "keys that were not asked for": (page(["docs/a", "secret"]), "not asked for"),
    "folders that were not asked for": (page([], ["secret/"]), "not asked for"),
    "the same page without end": (page(["docs/a"], token="again"), "again"),
    "half an answer": (Reply(page([f"docs/{n}" for n in range(99)]).body, missing=400), ""),
    "an answer that stops amid a tag": (Reply(page(["docs/a"]).body[:-9]), ""),
    "an invalid time": (
        Reply(page(["docs/a"]).body.replace("<LastModified>", "<LastModified>never ")),
        "an invalid time: 'never ",
    ),
    "a server error": (refusal(500, "InternalError"), "InternalError"),
    "too many requests": (refusal(503, "SlowDown"), "SlowDown"),
}


@pytest.mark.parametrize(("lie", "told"), LIES.values(), ids=LIES)
@pytest.mark.parametrize("good_pages", [0, 1], ids=["at once", "on the second page"])
def test_a_listing_that_may_not_be_whole_is_an_error(
    server: ListingServer, lie: Reply, told: str, good_pages: int
) -> None:
    """A refresh removes documents that are missing from a listing without an error."""
    # After a first page that is not the last, the source asks for folders, and this server has none.
    good = [page(["docs/good"], token="next"), page(["docs/good"])] * good_pages
    with pytest.raises(TransientError) as caught:
        paths(server, in_turn(*good, lie), folder="docs/")
    assert told in str(caught.value)


def test_pages_that_lead_in_a_circle_are_an_error(server: ListingServer) -> None:
    def circle(query: Mapping[str, str]) -> Reply:
        return page(["a"], token={"one": "two", "two": "one"}.get(query.get("continuation-token", ""), "one"))

    with pytest.raises(TransientError, match="same part of the listing again"):
        paths(server, circle)


STOPPING = {
    "NoSuchBucket": "correct the uri",
    "ExpiredToken": "sign in again",
    "InvalidAccessKeyId": "correct AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "correct AWS_SECRET_ACCESS_KEY",
    "RequestTimeTooSkewed": "clock",
    "AccessDenied": "grant them s3:ListBucket",
    "MethodNotAllowed": "MethodNotAllowed: because",
}


@pytest.mark.parametrize(("code", "told"), STOPPING.items(), ids=STOPPING)
@pytest.mark.parametrize("good_pages", [0, 2], ids=["at once", "on a later page"])
def test_what_only_an_operator_can_change_stops_the_scan(
    server: ListingServer, code: str, told: str, good_pages: int
) -> None:
    good = [page(["good"], token=str(number)) for number in range(good_pages)]
    with pytest.raises(SettingsError, match=f"s3://{BUCKET}/.*{told}"):
        paths(server, in_turn(*good, refusal(403, code)))


def test_what_the_server_asks_to_wait_is_told_and_nothing_is_repeated(server: ListingServer) -> None:
    """Retries happen in one place, for all kinds of sources."""
    with pytest.raises(TransientError) as caught:
        paths(server, in_turn(replace(refusal(503, "SlowDown"), headers={"Retry-After": "7"})))
    assert (caught.value.reason, caught.value.retry_after) == ("rate-limited", 7.0)
    assert len(server.queries) == 1


@pytest.mark.usefixtures("small_pages")
def test_a_listing_that_is_left_early_asks_for_little_more(server: ListingServer) -> None:
    server.answer = listing_of({f"{number:04}" for number in range(500)})
    with closing(source(server, "").scan()) as scan:
        assert next(scan)
    assert len(server.queries) < 6
