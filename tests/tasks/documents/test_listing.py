"""Sources are listed concurrently, and one that cannot be listed does not affect the others."""

import threading
from dataclasses import replace

import pytest

from parquetry import ids
from parquetry.errors import SettingsError, TransientError
from parquetry.model import BrokenOff
from parquetry.planning.unchanged import ScanPass, UnchangedIndex
from parquetry.settings.source import SourceSettings
from parquetry.sources.registry import Scope
from parquetry.tasks.documents.listing import list_scopes
from parquetry.tasks.engine.retries import Retries
from tests.records import row
from tests.shelf_source import ShelfSource


def scope(name):
    return Scope(SourceSettings(name=name, uri=f"shelf://{name}"), "default", "")


def listed(*sources, attempts=1):
    named = [(scope(f"s{number}"), source) for number, source in enumerate(sources)]
    return list_scopes(named, Retries(attempts, lambda _: None))


def paths(listing):
    return [item.path for item in listing.items]


def test_listing_that_breaks_off_keeps_what_was_seen_and_is_not_complete():
    source = ShelfSource(a="1", b="2", c="3")
    source.scan_failures = [(2, TransientError("unreachable", "no answer"))]
    (listing,) = listed(source)
    assert paths(listing) == ["a", "b"]
    assert not listing.complete
    assert listing.broken == BrokenOff("unreachable", "no answer")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionResetError(104, "reset"), "io-error"),
        (TimeoutError("late"), "timeout"),
        (KeyError("Key"), "unexpected"),
    ],
)
def test_whatever_breaks_a_listing_off_stays_with_its_source(error, reason):
    broken, whole = ShelfSource(a="1"), ShelfSource(b="2")
    broken.scan_failures = [(1, error)]
    first, second = listed(broken, whole)
    assert (first.broken.reason, second.complete, paths(second)) == (reason, True, ["b"])


def test_listing_that_broke_off_is_tried_again_from_the_start():
    source = ShelfSource(a="1", b="2", c="3")
    source.scan_failures = [(1, TransientError("unreachable", "no answer")), (2, ConnectionResetError(104, "reset"))]
    (listing,) = listed(source, attempts=3)
    assert (paths(listing), listing.complete, source.scans) == (["a", "b", "c"], True, 3)


def unchanged(*rows):
    known = UnchangedIndex()
    for each in rows:
        known.add(each)
    return ScanPass(known)


def test_document_that_is_listed_again_as_it_is_published_needs_nothing_after_all():
    """The document changed back while its folder was being listed."""
    source = ShelfSource(a__md="1")
    (item,) = source.scan("")
    known = unchanged(row("a.md", etag=item.etag, uri=item.uri, access=item.access))
    twice = ShelfSource()
    twice.scan = lambda prefix: iter([replace(item, etag="other"), item])
    (listing,) = list_scopes([(scope("s"), twice)], Retries(1, lambda _: None), [known])
    assert (listing.items, listing.unchanged, list(known.needing_work(complete=True))) == ((), 1, [])


def test_what_was_settled_in_a_try_that_broke_off_is_gone_if_the_next_one_does_not_list_it():
    source = ShelfSource(a="1", b="2")
    rows = [row(each.path, etag=each.etag, uri=each.uri, access=each.access) for each in source.scan("")]

    def fail_later():
        if source.scans == 3:
            del source.contents["b"]

    source.scan_failures, source.before_scan = [(2, TransientError("unreachable", "no answer"))], fail_later
    known = unchanged(*rows)
    (listing,) = list_scopes([(scope("s"), source)], Retries(2, lambda _: None), [known])
    assert (listing.unchanged, listing.complete) == (1, True)
    assert known.needing_work(complete=True) == {ids.memory_hash(rows[1].path)}


def test_what_tries_together_saw_settled_is_counted_once_when_all_broke_off():
    source = ShelfSource(a="1", b="2", c="3")
    first, second, _ = source.scan("")
    source.scan_failures = [(2, TransientError("unreachable", "no answer")), (1, TransientError("unreachable", "none"))]
    rows = [row(each.path, etag=each.etag, uri=each.uri, access=each.access) for each in (first, second)]
    (listing,) = list_scopes([(scope("s"), source)], Retries(2, lambda _: None), [unchanged(*rows)])
    assert (listing.items, listing.unchanged, listing.complete) == ((), 2, False)


def test_what_all_tries_together_saw_is_used():
    source = ShelfSource(a="1", b="2", c="3")
    failure = TransientError("unreachable", "no answer")
    source.scan_failures = [(3, failure), (0, failure)]
    (listing,) = listed(source, attempts=2)
    assert (paths(listing), listing.complete) == (["a", "b", "c"], False)


def test_sources_are_listed_at_the_same_time():
    together = threading.Barrier(3, timeout=20)
    sources = [ShelfSource(a="1") for _ in range(3)]
    for source in sources:
        source.before_scan = together.wait
    assert [paths(listing) for listing in listed(*sources)] == [["a"]] * 3


def test_place_that_does_not_exist_stops_everything_and_the_other_listings():
    stopped = threading.Event()

    class Missing(ShelfSource):
        def scan(self, prefix):
            raise SettingsError("no such bucket")

    class Endless(ShelfSource):
        def scan(self, prefix):
            try:
                while True:
                    yield from super().scan(prefix)
            finally:
                stopped.set()

    with pytest.raises(SettingsError, match="no such bucket"):
        listed(Endless(a="1"), Missing())
    assert stopped.wait(60)


def test_document_that_is_listed_twice_is_one():
    class Twice(ShelfSource):
        def scan(self, prefix):
            yield from super().scan(prefix)
            yield from super().scan(prefix)

    (listing,) = listed(Twice(a="1", b="2"))
    assert paths(listing) == ["a", "b"]
