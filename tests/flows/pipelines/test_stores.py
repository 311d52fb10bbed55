"""A corpus built from an Azure container, and from a custom source."""

from contextlib import ExitStack

import pytest

from tests.sources.cloud_shelves import AzureShelf


@pytest.fixture
def shelf(azurite, monkeypatch):
    with ExitStack() as stack:
        yield AzureShelf(monkeypatch, stack, azurite)


def test_corpus_follows_a_container_and_loses_nothing_when_the_listing_is_cut(shelf, workshop):
    for name in ("a", "b"):
        shelf.put(f"{name}.md", f"# Title\n\nAbout {name}.".encode())
    workshop.sections["source"] = {"uri": shelf.root}
    first = workshop.refresh()
    assert (first.documents.added, first.work.chunks_embedded) == (2, 2)
    again = workshop.refresh()
    assert (again.documents.unchanged, again.work.bytes_read) == (2, 0)

    shelf.put("renamed.md", b"# Title\n\nAbout a.")
    shelf.delete("a.md")
    renamed = workshop.refresh()
    assert (renamed.work.chunks_embedded, renamed.work.chunks_reused) == (0, 1)
    assert {path for path, row in workshop.rows().items() if not row.removed} == {"b.md", "renamed.md"}

    shelf.halting()
    cut = workshop.refresh()
    assert cut.documents.removed == 0
    assert {path for path, row in workshop.rows().items() if not row.removed} == {"b.md", "renamed.md"}
    assert [(each.stage, each.reason) for each in cut.failures] == [("scan", "unlisted")]
