"""Work is divided into batches of even size, the largest documents first."""

import pytest

from parquetry.planning.batches import into_batches
from parquetry.planning.diff import Change
from tests.records import item, row


def change(name, size, effort="extract", namespace="default"):
    return Change("added", effort, "", name, namespace, "docs", item(name, size=size), None)


def grouped(changes, batch_bytes, batch_documents):
    """Group the changes with a single embedder."""
    return into_batches(changes, lambda namespace: "model@4", batch_bytes, batch_documents)


def sizes(batches):
    return [[each.item.size for each in batch.changes] for batch in batches]


def test_largest_documents_come_first_and_fill_batches():
    changes = [change(str(size), size) for size in (1, 2, 3, 4, 5)]
    batches = grouped(changes, batch_bytes=6, batch_documents=10)
    assert sizes(batches) == [[5], [4], [3, 2, 1]]
    assert [batch.number for batch in batches] == [0, 1, 2]
    assert [batch.size for batch in batches] == [5, 4, 6]


def test_document_larger_than_a_batch_has_one_to_itself():
    assert sizes(grouped([change("a", 100), change("b", 1)], batch_bytes=10, batch_documents=10)) == [[100], [1]]


@pytest.mark.parametrize(("documents", "expected"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3])])
def test_batch_holds_no_more_documents_than_set(documents, expected):
    batches = grouped([change(str(n), 0) for n in range(3)], batch_bytes=10, batch_documents=documents)
    assert [len(batch.changes) for batch in batches] == expected


def test_what_needs_no_work_is_in_no_batch():
    changes = [change("a", 1, "nothing"), change("b", 1, "row"), change("c", 1, "rechunk"), change("d", 1)]
    (batch,) = grouped(changes, batch_bytes=10, batch_documents=10)
    assert {each.document_id for each in batch.changes} == {"c", "d"}
    assert grouped(changes[:2], 10, 10) == ()


def test_batches_do_not_depend_on_the_order_of_the_listing():
    changes = [change(name, 1) for name in "abcdef"]
    assert grouped(changes, 2, 10) == grouped(reversed(changes), 2, 10)


def test_removed_document_weighs_nothing():
    gone = Change("removed", "extract", "", "x", "default", "docs", None, row())
    assert grouped([gone], 1, 1)[0].size == 0


def test_batch_holds_documents_of_one_embedder_whatever_their_namespaces():
    embedders = {"a": "one@4", "b": "other@4", "c": "one@4"}
    changes = [change(f"{name}{size}", size, namespace=name) for size in (1, 2, 3) for name in embedders]
    batches = into_batches(changes, embedders.__getitem__, batch_bytes=6, batch_documents=10)
    found = [[(each.namespace, each.item.size) for each in batch.changes] for batch in batches]
    assert found == [
        [("a", 3), ("c", 3)],
        [("b", 3), ("b", 2), ("b", 1)],
        [("a", 2), ("c", 2), ("a", 1), ("c", 1)],
    ]
    assert [batch.number for batch in batches] == [0, 1, 2]


def test_batch_holds_documents_of_one_service():
    """Documents of a slow service wait only for each other."""
    changes = [change(f"{host}{size}", size) for size in (1, 2) for host in "ab"]
    batches = into_batches(changes, lambda _: "model@4", 10, 10, lambda each: each.document_id[0])
    assert [(batch.host, [each.document_id for each in batch.changes]) for batch in batches] == [
        ("a", ["a2", "a1"]),
        ("b", ["b2", "b1"]),
    ]
