"""Remote documents are read concurrently, in bounded memory, at their service's rate limit; local ones at once."""

import threading

import pytest

from parquetry.errors import TransientError
from parquetry.settings.source import SourceSettings
from parquetry.sources.registry import Scope
from parquetry.tasks.documents import fetching as module
from parquetry.tasks.documents.fetching import AT_A_TIME, Fetching
from parquetry.tasks.engine.base import Cancelled
from parquetry.tasks.engine.retries import Retries
from parquetry.waiting import Waits
from tests.shelf_source import ShelfSource


class Pauses(list):
    def __call__(self, seconds):
        self.append(seconds)


@pytest.fixture
def pauses():
    return Pauses()


@pytest.fixture
def fetching_of(pauses):
    opened = []

    def fetching_of(source, **settings):
        key = ("default", "docs")
        scopes = {key: Scope(SourceSettings(name="docs", **settings), "default", "")} if settings else {}
        opened.append(Fetching({key: source}, scopes, Retries(3, pauses), pauses, Waits()))
        return opened[-1]

    yield fetching_of
    for each in opened:
        each.close()


def item(source, path):
    (found,) = [each for each in source.scan(path) if each.path == path]
    return found


def start(fetching, function):
    return fetching.start("default", "docs", function)


def test_documents_of_this_machine_are_read_where_they_are_asked_for(fetching_of):
    fetching = fetching_of(ShelfSource(), uri="/srv/docs")
    threads = []
    future = start(fetching, lambda: threads.append(threading.current_thread()))
    assert (future.done(), threads) == (True, [threading.current_thread()])
    assert fetching.host("default", "docs") == ""


def test_documents_of_a_service_are_read_several_at_a_time_and_no_more(fetching_of):
    fetching = fetching_of(ShelfSource(), uri="s3://bucket/docs")
    together = threading.Barrier(AT_A_TIME, timeout=20)
    lock, at_work, most = threading.Lock(), 0, 0

    def read():
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        together.wait()
        with lock:
            at_work -= 1

    for future in [start(fetching, read) for _ in range(3 * AT_A_TIME)]:
        future.result(20)
    assert most == AT_A_TIME
    assert fetching.host("default", "docs") == "s3://bucket"


def test_fetch_that_fails_in_passing_is_tried_again(fetching_of, pauses):
    source = ShelfSource(a="text")
    source.fetch_failures["a"] = [TransientError("unreachable", "no answer"), ConnectionResetError(104, "reset")]
    fetching = fetching_of(source, uri="s3://bucket")
    found, content = fetching.fetch("default", "docs", item(source, "a"))
    assert (found.path, content) == ("a", b"text")
    assert (len(source.fetched), len(pauses)) == (3, 2)


def test_vanished_document_is_asked_for_once(fetching_of):
    source = ShelfSource(a="text")
    fetching, listed = fetching_of(source, uri="s3://bucket"), item(source, "a")
    del source.contents["a"]
    with pytest.raises(FileNotFoundError):
        fetching.fetch("default", "docs", listed)
    assert source.fetched == ["a"]


def test_rate_of_the_settings_spaces_the_fetches_of_one_host(fetching_of, pauses, monkeypatch):
    monkeypatch.setattr(module, "RATE_LIMITER", module.RATE_LIMITER.__class__(lambda: 1000.0))
    source = ShelfSource(a="text")
    fetching = fetching_of(source, uri="s3://bucket", requests_per_second=4)
    for _ in range(3):
        fetching.fetch("default", "docs", item(source, "a"))
    assert pauses == [0, 0.25, 0.5]


def test_documents_wait_until_there_is_room_for_them(fetching_of, monkeypatch):
    monkeypatch.setattr(module, "BYTES_AHEAD", 100)
    fetching = fetching_of(ShelfSource(), uri="s3://bucket")
    fetching.make_room(60)
    waiting = threading.Thread(target=fetching.make_room, args=(60,))
    waiting.start()
    fetching.make_room(40)
    assert waiting.is_alive()
    fetching.give_back(60)
    waiting.join(20)
    assert not waiting.is_alive()


def test_document_larger_than_the_room_is_alone(fetching_of, monkeypatch):
    monkeypatch.setattr(module, "BYTES_AHEAD", 100)
    fetching = fetching_of(ShelfSource(), uri="s3://bucket")
    fetching.make_room(1000)
    waiting = threading.Thread(target=fetching.make_room, args=(1,))
    waiting.start()
    fetching.give_back(1000)
    waiting.join(20)
    assert not waiting.is_alive()


def test_cancelled_run_does_not_wait_for_room(monkeypatch):
    monkeypatch.setattr(module, "BYTES_AHEAD", 100)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)

    def pause(seconds):
        raise Cancelled("was cancelled")

    fetching = Fetching({}, {}, Retries(1, pause), pause, Waits())
    fetching.make_room(100)
    with pytest.raises(Cancelled):
        fetching.make_room(1)
