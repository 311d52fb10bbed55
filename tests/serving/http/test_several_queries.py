"""Several questions at once in the gateway's form: a list for each, and all of them as one."""

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.checks import ok
from tests.workshop import Workshop

OAK = "The oak stands beside the river and drops its acorns late in the year. "
BARN = "The barn was painted red by two brothers with brushes of horsehair. "
QUERIES = ["Which tree drops acorns beside the river?", "Who painted the barn with brushes of horsehair?"]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("several"))
    workshop.write("both.md", f"# Oak\n\n{OAK * 60}\n\n# Barn\n\n{BARN * 60}\n")
    workshop.write("other.md", "# Fan\n\nThe fan in bay 4 runs backwards.\n")
    workshop.refresh()
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"state": str(workshop.root / "state")}}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def retrieve(app, **asked):
    with app.client() as client:
        return ok(client.post("/api/v1/knowledge/default/retrieve", json=asked))


def test_a_document_that_answers_two_questions_by_different_chunks_stands_once(app):
    told = retrieve(app, queries=QUERIES, level="document", top_k=2)
    first, second = (results[0] for results in told["results"])
    assert first["document_id"] == second["document_id"]
    assert first["chunk_id"] != second["chunk_id"]
    documents = [each["document_id"] for each in told["chunks"]]
    assert len(documents) == len(set(documents)) == 2
    assert told["chunks"][0] == max(first, second, key=lambda each: each["score"])


def test_nothing_of_any_list_is_lost_and_the_best_score_counts(app):
    told = retrieve(app, queries=QUERIES, top_k=5)
    best = {}
    for each in (chunk for results in told["results"] for chunk in results):
        best[each["chunk_id"]] = max(each["score"], best.get(each["chunk_id"], 0.0))
    assert {each["chunk_id"]: each["score"] for each in told["chunks"]} == best
    scores = [each["score"] for each in told["chunks"]]
    assert scores == sorted(scores, reverse=True)
