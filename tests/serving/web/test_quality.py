"""Quality and Map: an analysis is started in the page, and shows nobody what belongs to others."""

import json
import re
import time
from html import unescape

import pytest

from parquetry.model import Access
from parquetry.serving.web.map import cluster_names
from parquetry.serving.web.quality import is_unanswered, unanswered
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.store import UploadStore
from tests.servers.http_app import running_app, working_app
from tests.serving.web.browsing import Visitor
from tests.serving.web.conftest import HOSTILE
from tests.workshop import Workshop

pytestmark = pytest.mark.slow
POEM = " ".join(f"line{number} of the poem" for number in range(80))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("quality"))
    workshop.write("poem.txt", POEM)
    workshop.write(f"{HOSTILE}.txt", POEM)
    uploads = UploadStore(workshop.settings)
    for user in ("ada", "eve"):
        access = Access("individual", user_id=user)
        uploads.put("default", f"{user}.txt", POEM.encode(), filename=f"{user}.txt", access=access)
    workshop.refresh()
    workshop.refresh(targets=("uploads",))
    serve = {"token_required": True, "audit_text": True}
    with working_app(
        parse_settings({"corpus": {"root": str(workshop.root / "corpus")}, "serve": serve}, "test")
    ) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def visitor_of(guarded, **options):
    visitor = Visitor(guarded.url)
    visitor.sign_in(guarded.resources.tokens.create("visitor", **options)[1])
    return visitor


@pytest.fixture(scope="module")
def analyzed(guarded):
    """Start the analysis in the page, and wait for it."""
    visitor = visitor_of(guarded, rights=["admin"])
    page = visitor.open("/quality")
    assert "This corpus was not analyzed yet." in page.text
    page = visitor.send(page.form("/quality/analyze"))
    assert page.response.url.path == "/quality"
    end = time.monotonic() + 200
    while "Analyzed at the present version" not in page.text:
        assert time.monotonic() < end, page.text
        assert "failed" not in page.text
        time.sleep(0.1)
        page = visitor.open("/quality")


@pytest.fixture
def operator(guarded, analyzed):
    return visitor_of(guarded, rights=["admin"])


def points_of(visitor):
    """The head of the points that a visitor is sent, and the ids of the documents."""
    answer = visitor.client.get("/map/points").content
    begin = 4 + int.from_bytes(answer[:4], "little")
    told = json.loads(answer[4:begin])
    return told, answer[begin + 10 * told["count"] :]


def test_lists_have_their_documents_and_numbers(operator):
    page = operator.open("/quality", list="duplicates")
    assert "Duplicates 4" in page.text
    assert "4 documents alike" in page.text
    assert HOSTILE in page.text
    assert not [given for tag, given in page.tags if tag == "img" and given["src"] == "x"]
    assert "No documents." in operator.open("/quality", list="garbled").text


@pytest.mark.parametrize("user", ["ada", "eve"])
def test_documents_of_others_are_on_no_list_no_map_and_in_no_number(guarded, operator, user):
    other = {"ada": "eve", "eve": "ada"}[user]
    visitor = visitor_of(guarded, user_id=user, rights=["read", "search"])
    page = visitor.open("/quality", list="duplicates")
    assert "3 documents alike" in page.text
    assert f"{user}.txt" in page.text
    told, ids = points_of(visitor)
    assert (told["count"], len(ids)) == (3, 3 * 16)
    listed = visitor.open("/map", area="0,0,1,1")
    assert "3 documents in the area" in listed.text
    assert f"{user}.txt" in listed.text
    assert not [each for each in (page, listed) if f"{other}.txt" in each.html]
    with guarded.resources.follower.reader() as reader:
        ids = {row["filename"]: row["document_id"] for row in reader.documents()}
    assert visitor.open(f"/map/documents/{ids[f'{user}.txt']}").status == 200
    assert visitor.open(f"/map/documents/{ids[f'{other}.txt']}").status == 404
    # Questions are of everybody, and an analysis is of everything.
    assert "Questions without an answer" not in page.text
    assert "/quality/analyze" not in [form.action for form in page.forms]


def test_point_names_its_document(guarded, operator):
    told, found = points_of(operator)
    document = found[:16].hex()
    with guarded.resources.follower.reader() as reader:
        ids = {row["document_id"].replace("-", "") for row in reader.documents()}
    assert document in ids
    assert sorted(told["sources"]) == ["docs", "uploads"]
    assert told["types"] == ["Text"]


@pytest.mark.parametrize(
    ("place", "what"),
    [("/documents", "documents"), ("/quality?list=duplicates", "documents"), ("/runs", "runs")],
)
def test_page_behind_the_last_one_leads_to_the_first(operator, place, what):
    page = operator.open(f"{place}{'&' if '?' in place else '?'}page=99")
    assert f"No {what} on this page." in page.text
    (first,) = re.findall(r'<a href="([^"]+)">Go to the first page', page.html)
    assert "on this page." not in operator.open(unescape(first)).text


@pytest.mark.parametrize("asked", [{"area": "x"}, {"area": "0,0,9,1"}, {"cluster": "²"}, {"cluster": "99"}])
def test_place_that_is_none_lists_nothing(operator, asked):
    page = operator.open("/map", **asked)
    assert page.status == 200
    assert "poem.txt" not in page.html.partition('id="chosen"')[2]


def test_questions_that_found_nothing_are_listed_once(operator):
    for _ in range(2):
        operator.open("/search", q="Zebra crossing", tag="nowhere")
    page = operator.open("/quality", list="unanswered")
    assert page.text.count("Zebra crossing") == 1
    assert "2 times" in page.text
    assert "/search?q=Zebra%20crossing" in page.links or "/search?q=Zebra+crossing" in page.links


def test_administrator_of_a_part_starts_no_analysis(guarded, operator):
    visitor = visitor_of(guarded, org_id="acme", rights=["admin"])
    form = visitor.open("/add").form("/add/text")
    form.action = "/quality/analyze"
    assert visitor.send(form).status == 403


def test_without_an_analysis_the_pages_say_so(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.write("a.txt", "Words.")
    workshop.refresh()
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"read_only": True}}
    with running_app(parse_settings(settings, "test")) as app:
        visitor = Visitor(app.url)
        for path in ("/quality", "/map"):
            page = visitor.open(path)
            assert "parquetry analyze" in page.text
            assert page.forms == []
        assert visitor.open("/map/points").status == 404


def test_analysis_that_waits_is_shown_with_its_runs_and_can_be_cancelled(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.write("a.txt", "Words.")
    workshop.refresh()
    with running_app(parse_settings({"corpus": {"root": str(workshop.root / "corpus")}}, "test")) as app:
        visitor = Visitor(app.url)
        page = visitor.send(visitor.open("/quality").form("/quality/analyze"))
        assert "The corpus is being analyzed" in page.text
        assert "Analysis Waiting all documents" in visitor.open("/runs").text
        (cancel,) = [form for form in page.forms if form.action.endswith("/cancel")]
        assert "Cancelled: nothing was published." in visitor.send(cancel).text
        page = visitor.open("/map")
        assert "Analyze now" in page.text
        assert "is being analyzed" not in page.text


def test_clusters_are_named_by_words_that_others_lack():
    found = [
        (0, 3, ["Oak table report", "Oak chair report", "Oak"]),
        (1, 2, ["Salary report", "Salary bands"]),
        (2, 1, []),
    ]
    assert cluster_names(found) == [
        (0, 3, "report, chair, table"),
        (1, 2, "salary, bands, report"),
        (2, 1, "Cluster 3"),
    ]


def test_question_with_a_weak_best_match_has_no_answer():
    event = {
        "time": "2031-01-01T00:00:00Z", "event": "knowledge.retrieve", "text": "Why?", "chunks": 3, "documents": 1,
        "top_score": 0.2, "reason": None, "user_id": None, "org_id": None, "token_id": None, "operator": True,
        "address": None, "namespace": None, "target": None,
    }  # fmt: skip
    assert is_unanswered(event)
    assert is_unanswered({**event, "chunks": 0, "top_score": None})
    assert not is_unanswered({**event, "top_score": 0.5})
    assert not is_unanswered({**event, "text": None})
    assert [times for _, times in unanswered([event, {**event, "text": "why?"}])] == [2]
