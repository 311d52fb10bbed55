"""A commit whose outcome the store reports wrongly is published once and reported correctly."""

import pytest

from parquetry.errors import PublishConflict, StorageError
from parquetry.storage.lake.lake import Lake
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

ROOT = "s3://bucket/kb"
COMMIT = r"documents/_delta_log/0+1\.json$"
REGISTERED = r"chunks/_delta_log/0+1\.json$"
FOREVER = 10_000


@pytest.fixture
def store(small_store, monkeypatch, tmp_path):
    monkeypatch.setattr("parquetry.storage.lake.commits._PAUSE", 0.01)
    monkeypatch.setattr(
        "parquetry.storage.files.object_store_options._RETRIES",
        {"max_retries": "1", "backoff_config.init_backoff": "10ms"},
    )
    small_store.reset()
    for name, value in small_store.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return small_store


def commits(store, table="documents"):
    return [path for path in store.objects() if f"/{table}/_delta_log/" in path and path.endswith(".json")]


@pytest.mark.parametrize(("status", "times"), [(500, 1), (500, 2), (409, 1), (412, 1)])
def test_publish_that_landed_and_was_reported_as_failed_is_one_publish(store, status, times):
    shelf = Shelf(ROOT)
    store.fail("PUT", COMMIT, times=times, status=status, landed=True)
    assert shelf.publish({"a.md": ["one"]}) == 1
    assert shelf.texts() == {"a.md": ["one"]}
    assert len(commits(store)) == 2
    assert shelf.publish({"a.md": ["two"]}) == 2
    assert [each.sequence for each in shelf.rows()] == [2]


@pytest.mark.parametrize("status", [503, 409])
def test_publish_that_failed_for_a_while_is_one_publish(store, status):
    shelf = Shelf(ROOT)
    store.fail("PUT", COMMIT, times=4, status=status)
    assert shelf.publish({"a.md": ["one"]}) == 1
    assert shelf.texts() == {"a.md": ["one"]}


def test_publish_that_fails_for_good_publishes_nothing_and_the_next_one_works(store):
    shelf = Shelf(ROOT)
    rows, run = shelf.write({"a.md": ["one"]})
    store.fail("PUT", COMMIT, times=FOREVER)
    with pytest.raises(StorageError, match="nothing was published"):
        shelf.lake.publish(shelf.lake.snapshot(), rows, run)
    assert shelf.texts() == {}
    store.recover()
    assert shelf.lake.publish(shelf.lake.snapshot(), rows, run) == 1
    assert shelf.texts() == {"a.md": ["one"]}


def test_publish_of_unknown_outcome_says_so(store):
    shelf = Shelf(ROOT)
    rows, run = shelf.write({"a.md": ["one"]})
    base = shelf.lake.snapshot()
    store.fail("PUT", COMMIT, landed=True, then_down=True)
    with pytest.raises(StorageError, match=r"is not known.*`parquetry history` tells later; running again is safe"):
        shelf.lake.publish(base, rows, run)
    store.recover()
    assert shelf.texts() == {"a.md": ["one"]}
    with pytest.raises(PublishConflict):
        shelf.lake.publish(base, rows, run)
    assert len(commits(store)) == 2


def test_shards_that_were_registered_and_reported_as_failed_are_there_once(store):
    shelf = Shelf(ROOT)
    store.fail("PUT", REGISTERED, times=2, status=500, landed=True)
    shelf.publish({"a.md": ["one"]})
    assert len(shelf.lake.snapshot().files["chunks"]) == 1
    assert shelf.texts() == {"a.md": ["one"]}


def test_run_that_was_recorded_and_reported_as_failed_has_one_row(store):
    shelf = Shelf(ROOT)
    store.fail("PUT", r"runs/_delta_log/0+1\.json$", status=500, landed=True)
    shelf.lake.record({"run_id": "r1", "kind": "refresh"}, [])
    with shelf.connect() as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [("r1",)]


def test_table_that_was_made_and_reported_as_failed_is_made(store):
    store.fail("PUT", r"_delta_log/0+0\.json$", times=6, status=500, landed=True)
    assert Lake(ROOT, create=True).snapshot().version == 0


def test_two_publishers_of_whom_one_is_told_wrongly_both_know_the_truth(store):
    """The store answers 412 to the publisher whose commit landed, which is not a conflict. The other has a real one."""
    shelf = Shelf(ROOT)
    base = shelf.lake.snapshot()
    store.fail("PUT", COMMIT, status=412, landed=True)
    assert shelf.publish({"a.md": ["one"]}, base) == 1
    with pytest.raises(PublishConflict):
        shelf.publish({"b.md": ["two"]}, base)
    assert shelf.texts() == {"a.md": ["one"]}


def test_store_that_cannot_be_reached_is_one_line(store):
    shelf = Shelf(ROOT)
    store.fail("GET", "", times=FOREVER, status=503)
    with pytest.raises(StorageError, match=rf"corpus {ROOT} cannot be read") as raised:
        shelf.lake.snapshot()
    assert "\n" not in str(raised.value)
