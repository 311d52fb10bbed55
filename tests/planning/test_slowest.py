"""The slowest documents of a run: few, slowest first, each once, and without names in the table."""

import json

from parquetry.planning.slowest import SlowestItems, SlowItem, slowest_column


def item(name, seconds, stage="extract"):
    return SlowItem("default", "docs", name, f"file:///{name}", stage, seconds)


def test_only_the_slowest_are_kept():
    slowest = SlowestItems(most=3)
    for seconds in (5, 1, 9, 7, 3, 8):
        slowest.add(item(f"d{seconds}", seconds))
    assert [each.document_id for each in slowest.all] == ["d9", "d8", "d7"]


def test_document_that_is_tried_again_counts_once_with_its_longest_time():
    slowest = SlowestItems(most=3)
    for name, seconds in (("a", 2), ("a", 6), ("a", 1), ("b", 4)):
        slowest.add(item(name, seconds))
    assert [(each.document_id, each.seconds) for each in slowest.all] == [("a", 6), ("b", 4)]


def test_address_is_kept_without_its_secrets():
    slowest = SlowestItems()
    slowest.add(SlowItem("default", "docs", "a", "https://ada:hunter2hunter2@shop.test/a", "fetch", 1))
    (kept,) = slowest.all
    assert "hunter2" not in kept.uri
    assert kept.uri.endswith("@shop.test/a")


def test_column_has_ids_and_no_addresses():
    (told,) = json.loads(slowest_column([item("a", 1.23456)]))
    assert told == {"namespace": "default", "source": "docs", "document_id": "a", "stage": "extract", "seconds": 1.235}
