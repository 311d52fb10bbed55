"""Lists of documents: paged, sorted, narrowed and summed up in SQL, under the rights of their caller."""

import pytest

from parquetry.model import Access
from parquetry.storage.search.document_browsing import (
    ORDERS,
    Browsing,
    browse,
    facets,
    failures_by_reason,
    summarise,
)
from parquetry.storage.search.filters import Caller, Filters
from tests.records import row
from tests.storage.shelf import Shelf


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("many") / "corpus")
    shelf.publish({f"{number:04}.md": ["oak", "ash"][: 1 + number % 2] for number in range(1000)})
    shelf.publish({"Own.md": ["elm"]}, access=Access("individual", user_id="ada"), namespace="hr", source="upload")
    failed = row("failed.md", "", revision=0, status="failed", chunks=0, error="extract/encrypted: failed.md: locked")
    shelf.lake.publish(shelf.lake.snapshot(), [failed], "run-failed")
    return shelf


@pytest.fixture(scope="module")
def connection(shelf):
    with shelf.index() as opened:
        yield opened


def names(rows):
    return [row["filename"] for row in rows]


def test_pages_of_every_order_hold_each_document_once(connection):
    for order in ORDERS:
        for descending in (False, True):
            asked = Browsing(Filters(), order=order, descending=descending)
            pages = [browse(connection, asked, 300, offset) for offset in range(0, 1200, 300)]
            assert {total for _, total in pages} == {1002}
            found = [name for rows, _ in pages for name in names(rows)]
            assert len(found) == len(set(found)) == 1002, order
            # The last pages are read from the end of the list.
            assert found == names(browse(connection, asked, 2000, 0)[0]), order


def test_order_is_that_of_the_column_whatever_the_case(connection):
    page, _ = browse(connection, Browsing(Filters(), contains="0", order="name", descending=False), 2, 0)
    assert names(page) == ["0000.md", "0001.md"]
    page, _ = browse(connection, Browsing(Filters(), order="name", descending=True), 2, 0)
    assert names(page) == ["Own.md", "failed.md"]
    page, _ = browse(connection, Browsing(Filters(), order="chunks", descending=False), 1, 0)
    assert names(page) == ["failed.md"]


def test_list_is_narrowed_by_a_part_of_the_name_and_by_status(connection):
    assert browse(connection, Browsing(Filters(), contains="OWN"), 10, 0)[1] == 1
    assert browse(connection, Browsing(Filters(), contains="99"), 10, 0)[1] == 19
    # No pattern: a sign that some languages of patterns obey is a sign.
    assert browse(connection, Browsing(Filters(), contains="%"), 10, 0)[1] == 0
    assert names(browse(connection, Browsing(Filters(), status="failed"), 10, 0)[0]) == ["failed.md"]


def test_nothing_of_another_persons_documents_is_listed_counted_or_offered(connection):
    stranger, owner = Filters(caller=Caller("eve")), Filters(caller=Caller("ada"))
    assert browse(connection, Browsing(stranger), 1, 0)[1] == 1001
    assert browse(connection, Browsing(stranger, contains="own"), 1, 0) == ([], 0)
    assert {each.namespace for each in summarise(connection, stranger)} == {"default"}
    assert facets(connection, stranger).namespaces == ("default",)
    assert browse(connection, Browsing(owner), 1, 0)[1] == 1002
    assert facets(connection, owner).namespaces == ("default", "hr")


def test_sources_and_failures_are_summed_up(connection):
    (docs, upload) = summarise(connection, Filters())
    assert (docs.source, docs.documents, docs.indexed, docs.failed, docs.chunks) == ("docs", 1001, 1000, 1, 1500)
    assert (upload.namespace, upload.source, upload.documents) == ("hr", "upload", 1)
    assert failures_by_reason(connection, Filters()) == [("extract/encrypted", 1)]
