"""Handling of responses to an object request. The server responds as each test defines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from parquetry.errors import BrokenDocument, SettingsError, TransientError
from parquetry.model import Access, Item
from parquetry.sources.base import Place
from parquetry.sources.s3 import reading as s3_reading
from parquetry.sources.s3.source import S3Source, open_s3
from tests.servers.listing_server import BUCKET, ListingServer, Reply, refusal

OBJECT = Reply("text of the page", headers={"ETag": '"one"', "Last-Modified": "Tue, 06 May 2031 07:08:09 GMT"})


@pytest.fixture(scope="module")
def running() -> Iterator[ListingServer]:
    with ListingServer() as server:
        yield server


@pytest.fixture(scope="module")
def source(running: ListingServer) -> S3Source:
    return source_of(running)


@pytest.fixture(scope="module")
def source_of_s3fs(running: ListingServer) -> S3Source:
    """A source that reads all objects through s3fs."""
    found = source_of(running)
    found._reader._small = None
    return found


def source_of(running: ListingServer) -> S3Source:
    options = {"anonymous": True, "endpoint_url": running.url, "region": "us-east-1"}
    return open_s3(Place("s3", f"s3://{BUCKET}", options=options))


def listed(size: int) -> Item:
    time = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    return Item(
        "docs/page", f"s3://{BUCKET}/docs/page", size, f"one-{int(time.timestamp()):x}-{size:x}", time, Access()
    )


def read(server: ListingServer, source: S3Source, reply: Reply, size: int = 16) -> bytes:
    server.answer = lambda query: reply
    return source.fetch(listed(size))[1]


ANSWERS: dict[str, tuple[Reply, type[Exception], str]] = {
    "too many requests": (
        replace(refusal(503, "SlowDown"), headers={"Retry-After": "7"}),
        TransientError,
        "rate-limited",
    ),
    "a server error": (refusal(500, "InternalError"), TransientError, "unavailable"),
    "a bad gateway": (Reply("<html>502</html>", 502), TransientError, "unavailable"),
    "half of the object": (replace(OBJECT, missing=5), TransientError, "unreachable"),
    "an invalid time": (
        replace(OBJECT, headers={"ETag": '"one"', "Last-Modified": "yesterday"}),
        TransientError,
        "an invalid time: 'yesterday'",
    ),
    "no such object": (refusal(404, "NoSuchKey"), FileNotFoundError, "not in its bucket any more"),
    "not allowed": (refusal(403, "AccessDenied"), PermissionError, "may not read it"),
    "expired credentials": (refusal(400, "ExpiredToken"), SettingsError, "sign in again"),
    "an archived object": (refusal(403, "InvalidObjectState"), BrokenDocument, "archived"),
    "a key of its own": (refusal(400, "InvalidRequest"), BrokenDocument, "refused: .*InvalidRequest: because"),
}


@pytest.mark.parametrize(("reply", "kind", "told"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("size", [16, 100_000_000], ids=["whole", "by ranges"])
def test_what_is_not_the_object_is_an_error_of_its_kind(
    running: ListingServer, source_of_s3fs: S3Source, reply: Reply, kind: type[Exception], told: str, size: int
) -> None:
    running.queries.clear()
    with pytest.raises(kind, match=told):
        read(running, source_of_s3fs, reply, size)
    assert len(running.queries) == 1


@pytest.mark.parametrize(("reply", "kind", "told"), ANSWERS.values(), ids=ANSWERS)
def test_what_is_wrong_with_a_small_object_is_told_as_by_s3fs(
    running: ListingServer,
    source: S3Source,
    source_of_s3fs: S3Source,
    reply: Reply,
    kind: type[Exception],
    told: str,
) -> None:
    """A second request asks for the reason."""
    running.queries.clear()
    with pytest.raises(kind, match=told) as quick:
        read(running, source, reply)
    assert len(running.queries) == 2
    with pytest.raises(kind) as slow:
        read(running, source_of_s3fs, reply)
    assert str(quick.value) == str(slow.value)
    assert getattr(quick.value, "retry_after", None) == getattr(slow.value, "retry_after", None)


def test_a_server_without_ranges_is_believed_when_it_sends_the_object_whole(
    running: ListingServer, source: S3Source
) -> None:
    replaced = replace(OBJECT, headers={**OBJECT.headers, "ETag": '"two"'})
    assert read(running, source, replaced, 100_000_000) == b"text of the page"


def test_an_object_that_is_shorter_than_listed_and_has_not_changed_is_not_believed(
    running: ListingServer, source: S3Source
) -> None:
    with pytest.raises(TransientError, match="broken-answer"):
        read(running, source, OBJECT, 17)


def test_ranges_of_two_objects_are_not_put_together(
    running: ListingServer, source_of_s3fs: S3Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without support for If-Match sends the current content."""
    monkeypatch.setattr(s3_reading, "PART", 5)
    first = replace(OBJECT, body="text ", status=206, headers={**OBJECT.headers, "Content-Range": "bytes 0-4/10"})
    second = replace(first, body="other", headers={**first.headers, "ETag": '"two"', "Content-Range": "bytes 5-9/10"})
    replies = iter([first, second, replace(OBJECT, body="other page", headers={**OBJECT.headers, "ETag": '"two"'})])
    running.answer = lambda query: next(replies)
    assert source_of_s3fs.fetch(listed(11))[1] == b"other page"


@pytest.mark.parametrize(("reader", "begin"), [("source", "parquetry"), ("source_of_s3fs", "aiobotocore/")])
def test_every_request_says_who_asks(running, reader, begin, request):
    read(running, request.getfixturevalue(reader), OBJECT)
    agent = running.headers[-1]["User-Agent"]
    assert agent.startswith(begin)
    assert agent.endswith("parquetry")
