"""Versions of a document, as far as a caller may see each of them."""

from contextlib import closing

from parquetry import ids
from parquetry.model import Access
from parquetry.storage.search.document_history import text_of_revision, versions_of
from parquetry.storage.search.filters import Caller, Filters
from tests.storage.shelf import Shelf


def test_versions_are_those_of_times_at_which_the_caller_saw_the_document(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"oak.md": ["Oak is secret."]}, access=Access("individual", user_id="ada"))
    shelf.publish({"oak.md": ["Oak is hard."]})
    document = ids.document_id("default", "docs", "oak.md")
    with closing(shelf.connect()) as connection:
        everything = versions_of(connection, Filters(), document)
        texts = [text_of_revision(connection, row["revision"], 100) for row in everything]
        of_ben = versions_of(connection, Filters(caller=Caller(user_id="ben")), document)
        assert text_of_revision(connection, 17, 100) is None
        assert text_of_revision(connection, everything[0]["revision"], 6) == "Oak is"
    assert texts == ["Oak is hard.", "Oak is secret."]
    assert [row["revision"] for row in of_ben] == [everything[0]["revision"]]
