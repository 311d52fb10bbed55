"""Searches in pages: conditions in SQL, explanations, comparisons, and judgements on results."""

import re

import pytest

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.serving.http.dashboard.searching import RESULTS
from parquetry.serving.service.feedback import Judge
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.http_app import running_app
from tests.serving.web.browsing import Visitor
from tests.serving.web.conftest import HOSTILE
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

TEXTS = {
    "oak.md": "# Oak\n\nThe oak table has four legs.\n",
    "copy.md": "# Oak\n\nThe oak table has four legs.\n",
    "elm.md": "# Elm\n\nAn elm stool, beside the oak table.\n",
    f"{HOSTILE}.md": f"# {HOSTILE}\n\nThe oak <script>alert(2)</script> of a stranger.\n",
    **{f"note-{number}.md": f"Note {number} about an oak in bay {number}.\n" for number in range(25)},
}


@pytest.fixture(scope="module")
def wood(tmp_path_factory):
    """Run an application over a corpus of two versions, with tokens of several people."""
    workshop = Workshop(tmp_path_factory.mktemp("wood"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    private = workshop.root / "private"
    private.mkdir()
    (private / "vault.md").write_text("The oak vault of eve opens with evesword.")
    sources = [
        {"name": "docs", "uri": str(workshop.folder)},
        {"name": "eve", "uri": str(private), "visibility": "individual", "user_id": "eve"},
    ]
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "extraction": {"workers": 1}, "source": sources}
    run_refresh(Request(parse_settings(settings, "test")), DirectEngine(), Observer())
    workshop.write("elm.md", "# Elm\n\nThe stool was sold.\n")
    run_refresh(Request(parse_settings(settings, "test")), DirectEngine(), Observer())
    serve = {"token_required": True}
    with running_app(parse_settings({**settings, "serve": serve}, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        app.tokens = {
            "root": app.resources.tokens.create("root", rights=["admin"])[1],
            "ada": app.resources.tokens.create("ada", user_id="ada", rights=["search", "read"])[1],
            "seeker": app.resources.tokens.create("seeker", user_id="ada", rights=["search"])[1],
            "chief": app.resources.tokens.create("chief", user_id="ada", rights=["admin"])[1],
        }
        app.settings = settings
        yield app


@pytest.fixture
def person(wood):
    def sign_in(name):
        visitor = Visitor(wood.url)
        visitor.sign_in(wood.tokens[name])
        return visitor

    return sign_in


def test_condition_in_sql_narrows_a_search_of_an_administrator_alone(wood, person):
    root, ada = person("root"), person("ada")
    page = root.open("/search", q="oak", where="filename = 'oak.md'")
    assert "1 passage" in page.text
    # What it cannot be is told beside the form, which stays.
    for wrong in ("filename =", "read_text('/etc/passwd') <> ''", "(SELECT 1) = 1", "1=1; DROP TABLE documents"):
        page = root.open("/search", q="oak", where=wrong)
        assert page.status == 422
        assert page.form("/search").values["where"] == wrong
        assert 'data-reason="invalid-request"' in page.html
    assert "where" not in ada.open("/search", q="oak").form("/search").values
    refused = ada.open("/search", q="oak", where="user_id = 'eve'")
    assert (refused.status, "evesword" in refused.text) == (403, False)
    # An administrator with a user sees what that user sees, whatever the condition.
    assert "Nothing fits" in person("chief").open("/search", q="oak vault", where="user_id = 'eve'").text


def test_condition_reads_no_metadata_of_which_keys_are_hidden(wood):
    settings = parse_settings({**wood.settings, "metadata_denylists": {"knowledge": ["salary"]}}, "test")
    with running_app(settings) as app:
        with app.resources.follower.reader(wait=60):
            pass
        page = Visitor(app.url).open("/search", q="oak", where="metadata->>'$.salary' > '1'")
        assert page.status == 422
        assert "metadata_denylists hides keys" in page.text


def test_explanation_shows_ranks_and_scores_of_both_sides_and_why_a_candidate_was_dropped(person):
    page = person("ada").open("/search", q="oak table legs", explain="1")
    assert "passages considered" in page.text
    (title,) = re.findall(r'<title id="sides-title">(.*?)</title>', page.html)
    assert re.match(rf"{RESULTS} results: \d+ found on both sides", title)
    rows = re.findall(r'<tr( class="dropped")?>\s*<th scope="row">(.*?)</tr>', page.html, re.DOTALL)
    outcomes = [re.findall(r'data-label="Outcome">(.*?)<', row)[0] for _, row in rows]
    assert outcomes[:RESULTS] == [f"Result {place}" for place in range(1, RESULTS + 1)]
    assert "Same text as result 1" in outcomes
    assert f"Below the {RESULTS} best" in outcomes
    assert [bool(dropped) for dropped, _ in rows] == [not outcome.startswith("Result") for outcome in outcomes]
    # Every place of the list is drawn.
    assert len(re.findall('class="dot result"', page.html)) == RESULTS
    assert "evesword" not in page.html
    assert "vault" not in page.text


def test_two_ways_of_searching_stand_side_by_side(person):
    page = person("ada").open("/search/compare", q="oak of a stranger", mode="text", mode2="vector")
    assert re.search(rf"\d+ of {RESULTS} results are on both sides", page.text)
    assert "on the other side" in page.text
    assert "Only here" in page.text
    assert HOSTILE in page.text
    assert not [given for tag, given in page.tags if tag == "img" and given["src"] == "x"]
    assert 'name="version"' not in page.html


def test_two_versions_stand_side_by_side_for_those_who_see_everything(person):
    root = person("root")
    versions = [int(each) for each in re.findall(r'<option value="(\d+)"', root.open("/search/compare").html)]
    page = root.open("/search/compare", q="elm stool beside", mode="text", mode2="text", version2=min(versions))
    left, right = page.html.split('aria-label="Right"')
    assert "beside" not in left.split("<ol")[1]
    assert "beside" in right
    # It is searched, and nothing of it is opened.
    assert "/documents/" not in right
    assert root.open("/search/compare", q="elm", version2="999").status == 422
    for name in ("ada", "chief"):
        refused = person(name).open("/search/compare", q="elm", version2=str(min(versions)))
        assert refused.status == 403, name


def judge_forms(page):
    return [form for form in page.forms if form.action == "/search/feedback"]


def pressed(page):
    return [given["value"] for tag, given in page.tags if tag == "button" and given.get("aria-pressed") == "true"]


def test_result_is_judged_changed_and_taken_back_without_a_script(wood, person):
    ada, query = person("ada"), "which table has legs"
    form = judge_forms(ada.open("/search", q=query, mode="text"))[0]
    page = ada.send(form, relevant="yes")
    assert str(page.response.url.query, "ascii") == "q=which+table+has+legs&mode=text"
    assert pressed(page) == ["none"]
    judged = wood.resources.feedback.list(None)
    assert [(each.query, each.relevant, each.user_id) for each in judged] == [(query, True, "ada")]
    ada.send(form, relevant="no")
    assert [each.relevant for each in wood.resources.feedback.list(None)] == [False]
    # Another person sees none of it; the same one with another token does.
    assert pressed(person("root").open("/search", q=query, mode="text")) == []
    assert pressed(person("seeker").open("/search", q=query, mode="text")) == ["none"]
    ada.send(form, relevant="none")
    assert list(wood.resources.feedback.list(None)) == []


def test_what_one_may_not_see_cannot_be_judged(wood, person):
    ada = person("ada")
    form = judge_forms(ada.open("/search", q="oak"))[0]
    hidden = judge_forms(person("root").open("/search", q="evesword", mode="text"))[0].values
    for given in (
        {"document": hidden["document"], "chunk": hidden["chunk"]},
        {"document": hidden["document"], "chunk": form.values["chunk"]},
        {"chunk": hidden["chunk"]},
        {"document": "none"},
    ):
        assert ada.send(form, relevant="yes", **given).status == 404, given
    for given in ({"relevant": "perhaps"}, {"q": "  ", "relevant": "yes"}):
        assert ada.send(form, **given).status == 422
    assert wood.resources.feedback.judged(Judge("ada"), "oak") == {}


def test_token_without_the_right_to_read_gets_no_links_to_documents(person):
    page = person("seeker").open("/search", q="oak", explain="1")
    assert "oak.md" in page.text
    assert [link for link in page.links if link.startswith("/documents/")] == []


def test_read_only_service_takes_no_judgement(wood):
    with running_app(parse_settings({**wood.settings, "serve": {"read_only": True}}, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        visitor = Visitor(app.url)
        page = visitor.open("/search", q="oak")
        assert judge_forms(page) == []
        answer = visitor.client.post("/search/feedback", headers={"Origin": app.url})
        assert answer.status_code == 403
