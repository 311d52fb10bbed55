"""Pages of the dashboard without scripts, over a real socket: all that they show is text, of strangers, too."""

import re
import time

import pytest

from parquetry.serving.web.assets import assets
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.web.browsing import Visitor, marks
from tests.serving.web.conftest import HOSTILE, TEXTS
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

VIEWS = (
    "/",
    "/search",
    "/search?q=walnut",
    "/search?q=walnut&explain=1",
    "/search/compare?q=walnut",
    "/ask",
    "/documents",
    "/add",
    "/sign-in",
    "/documents/none",
)
OWN_PATH = re.compile(r"/static/[\w.-]+")


def id_of(visitor, name):
    page = visitor.open("/documents", q=name)
    (found,) = {link.rpartition("/")[2] for link in page.links if re.fullmatch(r"/documents/[0-9a-f-]{36}", link)}
    return found


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_allows_its_own_files_alone_and_is_kept_by_no_cache(visitor, view):
    page = visitor.open(view)
    policy = page.response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.response.headers["cache-control"] == "no-store"
    assert page.loaded
    assert [each for each in page.loaded if not OWN_PATH.fullmatch(each)] == []
    # The policy forbids both, and a browser would only say so in its console.
    assert [tag for tag, given in page.tags if "style" in given or tag == "style"] == []
    assert [tag for tag, given in page.tags if any(name.startswith("on") for name in given)] == []


def test_files_of_pages_are_kept_by_browsers_and_named_after_their_content(visitor):
    for asset in assets().values():
        response = visitor.client.get(asset.path)
        assert response.status_code == 200
        assert response.content == asset.content
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_overview_counts_what_is_there_and_says_what_failed(visitor):
    page = visitor.open("/")
    assert page.status == 200
    for figure in ("Documents 4", "Chunks 3", "Namespaces 1", "Entries 0", "Cost so far $0.00"):
        assert figure in page.text, figure
    assert re.search(r"Version 1, published (just now|\d+ minutes? ago)", page.text)
    assert "A document is cut into chunks" in page.text
    assert "Failed 1" in page.text
    assert "/documents?status=failed" in page.links
    assert "damaged" in page.text
    assert "The content is not a whole file of its type." in page.text


def test_search_shows_where_a_passage_stands_and_marks_the_words(visitor):
    page = visitor.open("/search", q="holidays of everybody", mode="text")
    assert "Leave" in page.text
    assert marks(page.html)[:2] == ["Everybody", "holiday"]
    assert re.search(r"\d+ % match", page.text)
    (link,) = {each for each in page.links if "chunk=" in each}
    assert "thirty days of holiday" in visitor.open(link).text


def test_filters_of_a_search_narrow_it(visitor):
    everything = visitor.open("/search", q="oak table", mode="text")
    assert "oak.txt" in everything.text
    for given in ({"tag": "none"}, {"source": "other"}, {"type": "text/markdown"}, {"until": "2001-01-01"}):
        page = visitor.open("/search", q="oak table", mode="text", **given)
        assert "Nothing fits under these filters." in page.text, given


@pytest.mark.parametrize("view", ["/search", "/documents"])
def test_names_and_contents_of_strangers_are_text(visitor, view):
    page = visitor.open(view, q="walnut" if view == "/search" else "onerror")
    assert HOSTILE in page.text
    assert [given for tag, given in page.tags if tag == "img" and given["src"] == "x"] == []
    assert not [tag for tag, given in page.tags if tag == "script" and "src" not in given]
    document = visitor.open(f"/documents/{id_of(visitor, 'onerror')}")
    assert "<script>alert(2)</script>" in document.text
    # A mark that turns the direction of a text is shown, and turns nothing.
    assert "\u202e" not in document.html
    assert "\\u{202e}" in document.html


def test_question_of_a_stranger_is_text(visitor):
    page = visitor.open("/search", q='"><script>alert(3)</script>')
    assert page.form("/search").values["q"] == '"><script>alert(3)</script>'
    assert not [tag for tag, given in page.tags if tag == "script" and "src" not in given]


def test_document_that_failed_says_why(visitor):
    page = visitor.open("/documents", status="failed")
    assert "broken.docx" in page.text
    assert "leave.md" not in page.text
    page = visitor.open(f"/documents/{id_of(visitor, 'broken.docx')}")
    assert "This document could not be read: damaged" in page.text
    assert "The content is not a whole file of its type." in page.text
    assert "What to do: Replace the file by a whole one; the next refresh indexes it." in page.text


def test_pages_say_what_does_not_exist(visitor):
    for path in ("/documents/none", "/documents/none/delete", "/add/jobs/none"):
        page = visitor.open(path)
        assert page.status == 404, path
        assert "Not Found" in page.text


def test_text_is_added_found_and_deleted_without_a_script(visitor):
    form = visitor.open("/add").form("/add/text")
    page = visitor.send(form, name="quokka", text="The quokka sleeps in the <b>shade</b>.")
    end = time.monotonic() + 120
    while "Searchable" not in page.text:
        assert time.monotonic() < end, page.text
        assert "Failed" not in page.text
        time.sleep(0.05)
        page = visitor.open(page.response.url.path)
    (document,) = [link for link in page.links if re.fullmatch(r"/documents/[0-9a-f-]{36}", link)]
    assert "<b>shade</b>" in visitor.open(document).text
    assert "quokka.md" in visitor.open("/search", q="quokka").text
    question = visitor.open(f"{document}/delete")
    assert "Delete this document?" in question.text
    page = visitor.send(question.form(f"{document}/delete"))
    assert "Deleted. You can undo this for an hour." in page.text
    assert visitor.open(document).status == 404
    page = visitor.send(page.form("/documents/undo"))
    assert "What was deleted is back." in page.text
    assert [form.action for form in page.forms if form.action == "/documents/undo"] == []
    assert "<b>shade</b>" in visitor.open(document).text
    assert "quokka.md" in visitor.open("/search", q="quokka").text


def settled(visitor, page):
    """Wait until what was handed in has its end."""
    end = time.monotonic() + 120
    while "Documents on their way" in page.text:
        assert time.monotonic() < end
        time.sleep(0.05)
        page = visitor.open(page.response.url.path)
    return page


def test_versions_of_a_document_are_compared(visitor):
    form = visitor.open("/add").form("/add/text")
    for said in ("The wombat\ndigs\nat night.", "The wombat\n<i>sleeps</i>\nat night."):
        page = settled(visitor, visitor.send(form, name="wombat", text=said))
    (document,) = [link for link in page.links if re.fullmatch(r"/documents/[0-9a-f-]{36}", link)]
    assert f"{document}/history" in visitor.open(document).links
    page = visitor.open(f"{document}/history")
    assert "2 Content" in page.text
    assert "1 Added" in page.text
    assert re.search(r"− removed digs \+ added <i>sleeps</i>", page.text)
    assert "The texts are the same." in visitor.open(f"{document}/history?old=2&new=2").text
    assert visitor.open(f"{document}/history?old=7&new=9").status == 200


def test_selected_documents_are_named_before_they_are_changed_and_their_deletion_is_undone(visitor):
    form = visitor.open("/add").form("/add/files")
    names = ("ibex.txt", "ibis.txt")
    settled(visitor, visitor.send(form, files=[("file", (name, f"The {name} rests.".encode())) for name in names]))
    ids = [id_of(visitor, name) for name in names]
    listed = visitor.open("/documents", q="ib").form("/documents/selected")

    def chosen(**given):
        page = visitor.send(listed, **given)
        return visitor.send(page.form("/documents/selected/confirmed")), page

    page, question = chosen(action="tag", tag="<b>alpine</b>", id=ids[0], all="")
    assert "ibex.txt" in question.text
    assert "ibis.txt" not in question.text
    assert "The tags were changed." in page.text
    assert "<b>alpine</b>" in visitor.open(f"/documents/{ids[0]}").text
    page, question = chosen(action="delete", all="on")
    assert "Delete these 2 documents?" in question.text
    assert "ibex.txt and 1 more" in page.text
    assert [visitor.open(f"/documents/{each}").status for each in ids] == [404, 404]
    page = visitor.send(page.form("/documents/undo"))
    assert "What was deleted is back." in page.text
    assert "<b>alpine</b>" in visitor.open(f"/documents/{ids[0]}").text
    assert visitor.send(listed, action="none", all="on").status == 422
    assert visitor.send(listed, action="delete", all="", id="none").status == 422


def test_document_that_failed_is_tried_again(visitor, house):
    jobs, document = house.app.resources.jobs, id_of(visitor, "broken.docx")
    before = {job.id for job in jobs.list(kind="reindex")}
    page = visitor.send(visitor.open(f"/documents/{document}").form("/documents/selected/confirmed"))
    assert "Being read again" in page.text
    (job,) = [job for job in jobs.list(kind="reindex") if job.id not in before]
    assert job.payload["documents"] == [document]


def test_files_are_added_together_and_one_that_is_damaged_says_so(visitor):
    form = visitor.open("/add").form("/add/files")
    sent = [("file", (name, content)) for name, content in (("fox.txt", b"A red fox."), ("bad.docx", b"PK\x03\x04 no"))]
    page = visitor.send(form, files=sent)
    end = time.monotonic() + 120
    while "Documents on their way" in page.text:
        assert time.monotonic() < end
        time.sleep(0.05)
        page = visitor.open(page.response.url.path)
    assert "fox.txt Searchable" in page.text
    assert re.search(r"bad.docx Failed damaged", page.text)
    assert "What to do: Replace the file by a whole one, and add it again." in page.text


@pytest.mark.parametrize("action", ["/add/text", "/add/files", "/add/url", "/sign-in", "/sign-out"])
def test_form_of_another_page_or_visit_is_refused(house, visitor, action):
    own = {"Origin": house.url, "Sec-Fetch-Site": "same-origin"}
    token = visitor.open("/add").form("/add/text").values["form_token"]
    given = {"name": "x.md", "text": "x", "form_token": token}
    stranger = Visitor(house.url)
    refusals = [
        # Loaded in another visit, in none, or without the token.
        stranger.client.post(action, data=given, headers=own),
        visitor.client.post(action, data={**given, "form_token": "0" * 64}, headers=own),
        visitor.client.post(action, data={"name": "x.md", "text": "x"}, headers=own),
        # Sent by another page.
        visitor.client.post(action, data=given, headers={"Origin": "http://evil.example"}),
        visitor.client.post(action, data=given, headers={"Sec-Fetch-Site": "cross-site"}),
        visitor.client.post(action, data=given, headers={"Origin": house.url.replace("127.0.0.1", "localhost")}),
    ]
    assert [each.status_code for each in refusals] == [403] * 6
    assert visitor.open("/documents", q="x.md").text.count("x.md") == 0


def test_deletion_needs_the_form_of_the_visit(visitor, house):
    document = id_of(visitor, "oak.txt")
    answer = visitor.client.post(f"/documents/{document}/delete", headers={"Origin": house.url})
    assert answer.status_code == 403
    assert visitor.open(f"/documents/{document}").status == 200


def test_first_run_leads_to_the_first_upload_and_source(tmp_path):
    with running_app(parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test")) as app:
        page = Visitor(app.url).open("/")
    assert "Nothing is published yet" in page.text
    assert "/add" in page.links
    assert "parquetry refresh ./docs" in page.text
    assert len(TEXTS) == 4


def test_pages_of_a_thousand_documents_follow_one_another(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({f"{number:04}.md": ["oak"] for number in range(1000)})
    settings = parse_settings({"corpus": {"root": str(tmp_path / "corpus")}, "search": {"language": "none"}}, "test")
    with running_app(settings) as app:
        visitor = Visitor(app.url)
        page, seen = visitor.open("/documents", sort="name"), []
        while True:
            seen += re.findall(r">(\d{4}\.md)</a>", page.html)
            following = [link for link in page.links if link.endswith(f"page={len(seen) // 50 + 1}")]
            if len(seen) >= 1000 or not following:
                break
            page = visitor.open(following[-1])
    assert seen == [f"{number:04}.md" for number in range(1000)]
    assert "951–1,000 of 1,000 documents" in page.text
