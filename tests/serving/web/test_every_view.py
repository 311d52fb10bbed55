"""Every view in a real browser: an audit of accessibility, no sideways scrolling, and all of it within reach of Tab."""

import re
from types import SimpleNamespace

import pytest

from parquetry.settings.sections import parse_settings
from parquetry.storage.analysis.analyze import analyze
from tests.files.pdf_writer import lines, write_pdf
from tests.servers import session_model
from tests.servers.browser import chromium
from tests.servers.chat_server import ChatServer
from tests.servers.http_app import running_app, working_app
from tests.servers.model_service import ModelService, text_stream, whole
from tests.serving.http.test_rights import routes
from tests.serving.web.browser_pages import audited, walked
from tests.serving.web.browsing import Visitor
from tests.serving.web.conftest import TEXTS
from tests.serving.web.test_page_faults import is_page
from tests.serving.web.yard import PATIENCE, planned, until
from tests.sessions_shelf import Shelf
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
SAID = ("Staging: the database is reset on Mondays.", "Staging: the database is not reset.")
GLUE = ("Glue: it needs 12 hours to dry.", "Glue: keep the bottle closed.")
PDF = write_pdf([lines(50, 780, [f"Board {number} of page {page} is oak." for number in range(9)]) for page in (1, 2)])
NO_PAGES = {
    "GET /add/states": "a part of a page",
    "GET /map/points": "data",
    "GET /map/documents/{document_id}": "a part of a page",
    "GET /documents/{document_id}/pages/{number}": "an image",
}


def answered(asked):
    if asked.path == "/v1/models":
        return whole({"data": [{"id": "m"}]})
    return text_stream("Thirty days [1].\n\n- **one**")


@pytest.fixture(scope="module")
def estate(tmp_path_factory):
    """Run a service in which every view has something to show."""
    root = tmp_path_factory.mktemp("estate")
    with ChatServer(session_model.answer) as model, ModelService(rule=answered) as upstream:
        shelf, workshop = Shelf(root, model.url), Workshop(root)
        shelf.write("staging.json", [f"public/fact: {each}" for each in SAID])
        shelf.write("glue.json", [f"public/fact: {GLUE[0]}"])
        for path, text in {**TEXTS, "board.pdf": PDF, "twin.txt": TEXTS["oak.txt"]}.items():
            workshop.write(path, text)
        workshop.refresh()
        shelf.learn()
        workshop.write("leave.md", f"{TEXTS['leave.md']}\nAsk in writing.\n")
        workshop.refresh()
        analyze(workshop.lake.snapshot(), workshop.settings.search)
        chats = {"name": "chats", "uri": str(shelf.folder), "content": "sessions", **shelf.source}
        tables = {
            "corpus": {"root": str(root / "corpus")},
            "extraction": {"workers": 1},
            "llm": {"model": "m", "base_url": model.url, "attempts": 1},
            "upstream": {"base_url": upstream.base_url},
            "serve": {"audit_text": True},
            "source": [{"name": "docs", "uri": str(workshop.folder)}, chats],
        }
        with working_app(parse_settings(tables, "test")) as app:
            yield SimpleNamespace(url=app.url, app=app, views=views(app, shelf))


def views(app, shelf):
    """Return the path of each view by its route."""
    visitor, jobs = Visitor(app.url), app.resources.jobs
    shelf.write("bottle.json", [f"public/fact: {GLUE[1]}"], first=1_767_325_600)
    learning = visitor.send(visitor.open("/entries").form("/entries/learn"), review="1")
    assert "waits_for" in jobs.wait(learning.response.url.path.rpartition("/")[2], PATIENCE).result
    plan = planned(visitor).response.url.path
    added = visitor.send(visitor.open("/add").form("/add/text"), name="numbat", text="The numbat digs.")
    until(visitor, added, "Searchable")
    token = app.resources.tokens.create("wiki", rights=["search"])[0]
    visitor.open("/search", q="zebra", tag="none")
    visitor.open("/documents/none")

    def first(path, pattern, **asked):
        return next(link for link in visitor.open(path, **asked).links if re.fullmatch(pattern, link))

    def document(name):
        return first("/documents", "/documents/[0-9a-f-]{36}", q=name)

    entry = first("/entries", "/entries/[0-9a-f-]{36}", standing="contradicted")
    return {
        "GET /": "/",
        "GET /search": "/search?q=days+of+holiday&explain=1&where=1%3D1",
        "GET /search/compare": "/search/compare?q=holiday&where=1%3D1",
        "GET /ask": "/ask",
        "GET /documents": "/documents",
        "GET /documents/{document_id}": f"{document('board')}?chunk=0",
        "GET /documents/{document_id}/history": f"{document('leave')}/history",
        "GET /documents/{document_id}/delete": f"{document('oak')}/delete",
        "GET /add": "/add",
        "GET /add/jobs/{job_id}": added.response.url.path,
        "GET /runs": "/runs",
        "GET /runs/plan": "/runs/plan",
        "GET /runs/jobs/{job_id}": plan,
        "GET /runs/history/{run_id}": first("/runs", "/runs/history/.+", kind="refresh"),
        "GET /runs/versions": "/runs/versions",
        "GET /runs/versions/{version}": "/runs/versions/1",
        "GET /runs/versions/{version}/restore": "/runs/versions/1/restore",
        "GET /entries": "/entries",
        "GET /entries/{entry_id}": entry,
        "GET /entries/decisions/{decision_id}/undo": first(entry, "/entries/decisions/.+/undo"),
        "GET /entries/reviews": "/entries/reviews",
        "GET /map": "/map?cluster=0",
        "GET /quality": "/quality?list=duplicates",
        "GET /admin": "/admin",
        "GET /admin/tokens/{token_id}/revoke": f"/admin/tokens/{token.id}/revoke",
        "GET /admin/audit": "/admin/audit",
        "GET /admin/settings": "/admin/settings",
        "GET /sign-in": "/sign-in",
        "a document that failed": document("broken"),
        "questions without an answer": "/quality?list=unanswered",
        "what does not exist": "/documents/none",
    }


def test_no_view_is_left_out(estate):
    served = {f"{method} {path}" for method, path, _ in routes(estate.app) if is_page(path) and method == "GET"}
    assert served - NO_PAGES.keys() - estate.views.keys() == set()
    assert estate.app.resources.jobs.list(kind="plan")


@pytest.mark.parametrize("width", [390, 1280])
def test_every_view_is_in_reach_of_all(estate, open_page, width):
    page = open_page("/", base=estate.url, width=width)
    for path in estate.views.values():
        answer = page.goto(estate.url + path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        if path.startswith("/map"):
            page.get_by_text("Point at one").wait_for()
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        audited(page, width)
        walked(page)
    # The console tells of the view that does not exist.
    assert [each for each in open_page.told if "404" not in each] == []
    open_page.told.clear()


@pytest.mark.parametrize("width", [390, 1280])
def test_page_of_a_file_that_comes_late_moves_nothing(estate, open_page, width):
    page, held = open_page("/", base=estate.url, width=width), []
    page.route("**/pages/1?*", lambda route: held.append(route))
    with page.expect_request("**/pages/1?*"):
        page.goto(estate.url + estate.views["GET /documents/{document_id}"])
        page.get_by_role("heading", name="Page 1").scroll_into_view_if_needed()
    picture, after = page.locator(".page-picture img"), page.get_by_role("heading", name="About")
    before = after.bounding_box()["y"]
    assert picture.evaluate("(image) => image.naturalWidth") == 0
    with page.expect_event("requestfinished"):
        held.pop().continue_()
    until_drawn = "(image) => image.decode().then(() => image.naturalWidth)"
    assert picture.evaluate(until_drawn) == 1200
    assert after.bounding_box()["y"] == pytest.approx(before, abs=1)


@pytest.mark.parametrize("width", [390, 1280])
def test_views_that_follow_a_form_are_in_reach_of_all(estate, open_page, width):
    page = open_page("/ask", base=estate.url, width=width)
    page.keyboard.type("How many days of holiday?")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Good answer").wait_for()
    audited(page, width)
    walked(page)
    page.goto(f"{estate.url}/documents?q=leave")
    page.get_by_role("checkbox", name="Select leave.md").press("Space")
    assert page.locator("#selected-count").inner_text() == "1 selected"
    page.locator("#selected").get_by_role("button", name="Delete").press("Enter")
    page.wait_for_url("**/selected")
    audited(page, width)
    walked(page)
    page.goto(f"{estate.url}/admin")
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_role("button", name="Make token").press("Enter")
    page.get_by_text("Copy it now").wait_for()
    audited(page, width)
    walked(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_first_run_is_in_reach_of_all(open_page, tmp_path, width):
    with running_app(parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test")) as app:
        page = open_page("/", base=app.url, width=width)
        page.get_by_role("heading", name="Nothing is published yet").wait_for()
        audited(page, width)
        walked(page)


def test_token_is_asked_for_and_leads_to_the_page(open_page, tmp_path):
    settings = {"corpus": {"root": str(tmp_path / "corpus")}, "serve": {"token_required": True}}
    with running_app(parse_settings(settings, "test")) as app:
        plain = app.resources.tokens.create("ada", user_id="ada", rights=["search", "read", "write"])[1]
        page = open_page("/sign-in?next=/add", base=app.url)
        page.keyboard.type(plain)
        page.keyboard.press("Enter")
        page.wait_for_url("**/add")
        assert page.get_by_title("Signed in as").inner_text() == "ada"
        assert page.evaluate("document.cookie") == ""
        assert page.get_by_label("Seen by").first.locator("option").all_inner_texts() == ["Only me"]
        page.get_by_role("button", name="Sign out").press("Enter")
        page.wait_for_url("**/sign-in")


def test_browser_is_not_left_out_in_ci(monkeypatch):
    """With `CI` set, a missing browser fails."""
    monkeypatch.setattr("tests.servers.browser.CHROMIUM", None)
    for value, outcome in (("1", pytest.fail.Exception), ("", pytest.skip.Exception)):
        monkeypatch.setenv("CI", value)
        with pytest.raises(outcome, match="apt-get install"), chromium():
            pass
