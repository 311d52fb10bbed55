"""Pages of documents: one version from the first page to the last, whatever is published meanwhile."""

from datetime import UTC, datetime

import pytest

from parquetry.errors import PagesGone, SettingsError
from parquetry.model import Access
from parquetry.planning.rows import RunStamp
from parquetry.serving.search.pages import read_page
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.storage.maintenance.erasure import forget_user
from parquetry.storage.search.filters import Caller, Filters
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

ALL = Filters()


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({f"{name}.md": [f"text of {name}"] for name in "abcde"})
    shelf.publish({"f.md": ["of ada"]}, access=Access("individual", user_id="ada"))
    return shelf


@pytest.fixture
def settings(shelf):
    return Settings.model_validate({"corpus": {"root": str(shelf.root)}})


def all_pages(settings, filters=ALL, limit=2, between=lambda: None):
    """Return the paths of each page, read as a service does: with the newest reader for every page."""
    pages, token = [], None
    while True:
        with Reader(settings) as reader:
            page = read_page(settings, reader, filters, limit=limit, token=token)
        pages.append([row["path"] for row in page.documents])
        token = page.next
        if token is None:
            return pages
        between()


def test_every_document_is_on_one_page(settings):
    pages = all_pages(settings)
    assert [len(page) for page in pages] == [2, 2, 2]
    assert sorted(path for page in pages for path in page) == [f"{name}.md" for name in "abcdef"]
    assert pages == all_pages(settings)


def test_publishes_between_pages_neither_double_nor_lose_a_document(settings, shelf):
    """Each page would otherwise skip or repeat what moved across its border."""
    before = [path for page in all_pages(settings) for path in page]
    runs = []

    def publish():
        runs.append(shelf.publish({f"new-{len(runs)}.md": ["new"], "c.md": ["changed"]}))
        shelf.remove(before[len(runs) - 1])

    pages = all_pages(settings, between=publish)
    assert [path for page in pages for path in page] == before
    assert len(runs) == 2


def test_offset_and_total_without_token(settings):
    with Reader(settings) as reader:
        page = read_page(settings, reader, ALL, limit=4, offset=4)
        assert (len(page.documents), page.total, page.offset, page.next) == (2, 6, 4, None)
        beyond = read_page(settings, reader, ALL, limit=4, offset=40)
        assert (beyond.documents, beyond.total, beyond.next) == ((), 6, None)


def test_only_what_the_caller_may_see_is_listed_and_counted(settings):
    with Reader(settings) as reader:
        page = read_page(settings, reader, Filters(caller=Caller("bob")))
        assert (page.total, len(page.documents)) == (5, 5)
        assert read_page(settings, reader, Filters(caller=Caller("ada"))).total == 6
        assert read_page(settings, reader, Filters(("hr",))).total == 0


def test_permissions_hold_on_pages_of_an_earlier_version(settings, shelf):
    with Reader(settings) as reader:
        token = read_page(settings, reader, Filters(caller=Caller("bob")), limit=3).next
    shelf.publish({"new.md": ["new"]})
    with Reader(settings) as reader:
        rest = read_page(settings, reader, Filters(caller=Caller("bob")), limit=10, token=token)
    assert len(rest.documents) == 2
    assert "f.md" not in {row["path"] for row in rest.documents}


def test_pages_of_a_version_that_is_gone_say_so(settings, shelf):
    """Erasure removes data of a user from every version."""
    with Reader(settings) as reader:
        token = read_page(settings, reader, ALL, limit=2).next
        forget_user(
            shelf.lake, "ada", RunStamp("20320101T000000-00000000", datetime(2032, 1, 1, tzinfo=UTC)), shelf.settings
        )
    with Reader(settings) as reader, pytest.raises(PagesGone, match="read the list again") as gone:
        read_page(settings, reader, ALL, limit=2, token=token)
    assert gone.value.reason == "pages-gone"
    assert len(all_pages(settings)) == 3


@pytest.mark.parametrize("token", ["", "v1", "7-2", "v1-2 ", "v-1-2", "v1-" + "9" * 40])
def test_wrong_token_is_refused(settings, token):
    with Reader(settings) as reader, pytest.raises(SettingsError, match="is no token of a page"):
        read_page(settings, reader, ALL, token=token)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (1001, 0), (1, -1)])
def test_number_out_of_range_is_refused(settings, limit, offset):
    with Reader(settings) as reader, pytest.raises(SettingsError, match="1 to 1000"):
        read_page(settings, reader, ALL, limit=limit, offset=offset)


def pages_by_token(settings, token, caller=None):
    with Reader(settings) as reader:
        return read_page(settings, reader, Filters(caller=caller), limit=10, token=token)


def test_token_of_an_earlier_version_shows_nothing_that_was_removed_or_hidden_since(settings, shelf):
    """A token can be made up: it names a version, and every version is still there."""
    shelf.remove("a.md")
    shelf.publish({"b.md": ["text of b"]}, access=Access("individual", user_id="ada"))
    page = pages_by_token(settings, "v1-0", Caller("bob"))
    assert {row["path"] for row in page.documents} == {"c.md", "d.md", "e.md"}
    assert (page.total, page.version, page.next) == (3, 1, None)
    everything = pages_by_token(settings, "v1-0")
    assert {row["path"] for row in everything.documents} == {"b.md", "c.md", "d.md", "e.md"}
    assert everything.total == 4


def test_list_goes_on_behind_a_page_of_which_nothing_is_left(settings, shelf):
    with Reader(settings) as reader:
        first = read_page(settings, reader, ALL, limit=2)
    second = all_pages(settings)[1]
    for path in second:
        shelf.remove(path)
    with Reader(settings) as reader:
        page = read_page(settings, reader, ALL, limit=2, token=first.next)
        assert (page.documents, page.total) == ((), 4)
        last = read_page(settings, reader, ALL, limit=2, token=page.next)
    assert len(last.documents) == 2
    assert last.next is None
