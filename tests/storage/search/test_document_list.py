"""Lists of documents: whole, in a stable order, limited to what the caller may see."""

from datetime import UTC, datetime, timedelta

import pytest

from parquetry.model import Access
from parquetry.storage.search.document_list import (
    count_documents,
    find_document,
    page_of_documents,
    visible_namespaces,
)
from parquetry.storage.search.filters import Caller, Filters
from tests.records import row
from tests.storage.shelf import Shelf

START = datetime(2031, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("library") / "corpus")
    for number, name in enumerate("dacb"):
        shelf.publish({f"{name}.md": ["oak", "ash"]}, created_at=START + timedelta(days=number))
    shelf.publish({"own.md": ["elm"]}, access=Access("individual", user_id="ada"), namespace="hr")
    failed = row("failed.md", "", revision=0, status="failed", chunks=0, created_at=START + timedelta(days=9))
    shelf.lake.publish(shelf.lake.snapshot(), [failed], "run-failed")
    return shelf


def names(rows):
    return [row["filename"] for row in rows]


def test_pages_follow_one_another_without_gap_or_double(shelf):
    filters = Filters(("default",))
    with shelf.index() as connection:
        pages = [names(page_of_documents(connection, filters, 2, offset)) for offset in (0, 2, 4, 6)]
        assert pages == [["d.md", "a.md"], ["c.md", "b.md"], ["failed.md"], []]
        counts = count_documents(connection, filters)
        assert (counts.documents, counts.chunks) == (5, 8)


def test_hidden_documents_are_neither_listed_nor_counted_nor_found(shelf):
    (hidden,) = [row for row in shelf.rows() if row.filename == "own.md"]
    everyone, owner = Filters(caller=Caller()), Filters(caller=Caller("ada"))
    with shelf.index() as connection:
        assert count_documents(connection, everyone).documents == 5
        assert "own.md" not in names(page_of_documents(connection, everyone, 100, 0))
        assert find_document(connection, everyone, hidden.document_id) is None
        assert find_document(connection, owner, hidden.document_id)["filename"] == "own.md"
        assert find_document(connection, Filters(("default",)), hidden.document_id) is None
        assert visible_namespaces(connection, everyone) == ["default"]
        assert visible_namespaces(connection, owner) == ["default", "hr"]
