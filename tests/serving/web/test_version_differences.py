"""The preview of a restoration is counted from the documents alone that may differ."""

import pytest

from parquetry.model import Access
from parquetry.serving.web.versions import restore_preview
from parquetry.storage.lake.run_views import run_views
from parquetry.storage.lake.snapshot_views import add_differing
from parquetry.storage.maintenance.compaction import compact
from tests.storage.maintenance.test_compaction import NEWEST_ONLY, stamp
from tests.storage.shelf import Shelf


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"kept.md": ["oak"], "changed.md": ["elm"], "gone.md": ["ash"], "hidden.md": ["yew"]})
    shelf.publish({"changed.md": ["elms"], "new.md": ["fir"], "newer.md": ["box"]})
    shelf.remove("gone.md")
    shelf.permit("hidden.md", Access("individual", None, "ada", ()))
    return shelf


def counted(shelf, version):
    with run_views(shelf.lake) as connection:
        preview = restore_preview(connection, shelf.lake, version)
    return preview.back["documents"], preview.gone["documents"]


def test_preview_counts_what_returns_and_what_goes(shelf):
    first, newest = (shelf.lake.snapshot(each) for each in (1, None))
    assert counted(shelf, 1) == (3, 2)
    assert counted(shelf, newest.version) == (0, 0)
    with run_views(shelf.lake) as connection:
        add_differing(connection, first, newest)
        names = connection.execute('SELECT path FROM "then" UNION SELECT path FROM "now" ORDER BY 1').fetchall()
    # What is the same in files that both versions have is not compared.
    assert [name for (name,) in names] == ["changed.md", "gone.md", "hidden.md", "new.md", "newer.md"]


def test_preview_is_the_same_when_files_were_merged(shelf):
    before = shelf.lake.snapshot().version
    assert not compact(shelf.lake, NEWEST_ONLY, shelf.settings, stamp()).is_idle
    assert counted(shelf, 1) == (3, 2)
    assert counted(shelf, before) == (0, 0)
