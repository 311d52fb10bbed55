"""Refreshes of web pages: nothing is sent twice, nothing is lost when a server fails, and search results cite URLs."""

import pytest

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import parse_settings
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.engine import retries
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.web_server import Page, WebServer

pytestmark = pytest.mark.slow

TEXTS = {"holidays": "Thirty days of holiday in a year.", "travel": "Trains before planes.", "pay": "Paid on the 25th."}


def page(name, text=None):
    text = text or TEXTS[name]
    return Page(f"<!doctype html><title>{name}</title><main><h1>{name}</h1><p>{text}</main>", etag=f'"{hash(text)}"')


class Site:
    """A server with a list of pages, and the corpus built from it."""

    def __init__(self, server, root):
        self.server, self.root, self.options = server, root, {}
        server.pages |= {f"/{name}": page(name) for name in TEXTS}
        self.list(*TEXTS)

    def list(self, *names):
        self.server.pages["/urls.txt"] = Page("".join(f"{self.server.url}/{name}\n" for name in names))

    @property
    def settings(self):
        options = {"allow": [self.server.place], "requests_per_second": 1000, **self.options}
        source = {"name": "site", "uri": f"{self.server.url}/urls.txt", "options": options}
        sections = {"extraction": {"workers": 1}, "refresh": {"attempts": 2}}
        return parse_settings({"corpus": {"root": str(self.root)}, "source": [source], **sections}, "test")

    def refresh(self, **options):
        self.server.asked.clear()
        return run_refresh(Request(self.settings, **options), DirectEngine(), Observer())

    def rows(self):
        return {row.path.partition("/")[2]: row for row in current_rows(Lake(str(self.root)).snapshot())}

    def best(self, query):
        return Reader(self.settings).search(SearchRequest(query)).hits[0].row

    def answered(self):
        """Return (path, status) of each request of the last refresh."""
        return sorted((each.path, each.status) for each in self.server.asked if each.path != "/robots.txt")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    with WebServer() as server:
        yield Site(server, tmp_path / "corpus")


def test_each_page_is_asked_for_once_and_sent_once(site):
    report = site.refresh()
    assert (report.documents.added, report.failures) == (3, ())
    everything = [("/holidays", 200), ("/pay", 200), ("/travel", 200), ("/urls.txt", 200)]
    assert site.answered() == everything
    assert site.refresh().documents.unchanged == 3
    assert site.answered() == [(path, 304 if path != "/urls.txt" else 200) for path, _ in everything]
    site.server.pages["/pay"] = page("pay", "Paid on the 27th.")
    report = site.refresh()
    assert (report.documents.changed, report.documents.unchanged) == (1, 2)
    assert site.answered() == [("/holidays", 304), ("/pay", 200), ("/travel", 304), ("/urls.txt", 200)]
    hit = site.best("when paid")
    assert (hit["uri"], "27th" in hit["text"]) == (f"{site.server.url}/pay", True)


def test_page_that_moved_keeps_its_vectors(site):
    site.refresh()
    site.server.pages["/payment"] = site.server.pages.pop("/pay")
    site.list("holidays", "travel", "payment")
    report = site.refresh()
    assert (report.documents.moved, report.documents.removed, report.work.chunks_embedded) == (1, 0, 0)
    assert sorted(site.rows()) == ["holidays", "payment", "travel"]


def test_page_that_is_gone_or_no_longer_listed_is_removed(site):
    site.refresh()
    del site.server.pages["/pay"]
    site.list("holidays", "pay")
    assert site.refresh().documents.removed == 2
    assert sorted(site.rows()) == ["holidays"]


@pytest.mark.parametrize("status", [500, 503, 404, 403], ids=str)
def test_list_that_fails_removes_nothing_and_is_told(site, status):
    site.refresh()
    site.server.pages["/urls.txt"] = Page("<h1>sorry</h1>", status)
    report = site.refresh()
    assert (report.documents.removed, len(site.rows())) == (0, 3)
    assert [failure.stage for failure in report.failures] == ["scan"]


def test_maintenance_page_instead_of_the_list_removes_nothing(site):
    site.refresh()
    site.server.pages["/urls.txt"] = Page("<!doctype html><h1>Back soon</h1>")
    report = site.refresh()
    assert (report.documents.removed, sorted(site.rows())) == (0, sorted(TEXTS))


def test_page_that_fails_keeps_its_text_and_the_removals_of_others_wait(site):
    site.refresh()
    site.list("holidays", "travel")
    site.server.pages["/travel"] = Page("down", 500)
    assert site.refresh().documents.removed == 0
    site.server.pages["/travel"] = page("travel")
    assert site.refresh().documents.removed == 1


def test_page_that_may_not_be_read_any_more_fails_and_keeps_its_text(site):
    site.refresh()
    site.server.pages["/travel"] = Page("log in", 401)
    report = site.refresh()
    assert [(failure.reason, failure.uri) for failure in report.failures] == [
        ("forbidden", f"{site.server.url}/travel")
    ]
    assert site.rows()["travel"].revision != 0
    assert site.best("trains planes")["uri"] == f"{site.server.url}/travel"
    site.server.pages["/travel"] = page("travel")
    report = site.refresh()
    assert (report.failures, site.rows()["travel"].status) == ((), "indexed")
