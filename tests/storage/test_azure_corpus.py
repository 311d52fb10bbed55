"""A corpus on Microsoft's emulator of Azure Blob Storage behaves like one in a folder."""

import pytest

from parquetry.errors import PublishConflict
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.doctor import examine
from tests.storage.shelf import Shelf


@pytest.fixture(params=["abfs", "az"])
def shelf(request, azurite, monkeypatch, tmp_path):
    for name, value in (azurite.environment() | azurite.table_environment()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Shelf(f"{request.param}://{azurite.container()}/kb")


def test_documents_are_published_searched_and_looked_back_at(shelf):
    shelf.publish({"a.md": ["one oak"], "b.md": ["other elm"]})
    shelf.publish({"a.md": ["three oak"]})
    shelf.remove("b.md")
    assert shelf.texts() == {"a.md": ["three oak"]}
    assert shelf.texts(1) == {"a.md": ["one oak"], "b.md": ["other elm"]}
    assert [text for text, _ in shelf.search("oak")] == ["three oak"]
    assert [entry.version for entry in shelf.lake.history()] == [3, 2, 1, 0]
    assert examine(shelf.lake, shelf.settings).findings == ()


def test_second_of_two_publishes_from_one_version_gives_way(shelf):
    shelf.publish({"a.md": ["one"]})
    base = shelf.lake.snapshot()
    shelf.publish({"a.md": ["first"]}, base)
    with pytest.raises(PublishConflict):
        shelf.publish({"b.md": ["second"]}, base)
    assert Lake(shelf.root).snapshot().version == 2
    assert shelf.texts() == {"a.md": ["first"]}
