"""Scores of a calibrated reranker: one meaning of a threshold in every dialect."""

import json

import pytest

from parquetry import Corpus
from parquetry.ranking.relevance import LOG_ODDS, Calibration, Curve
from parquetry.ranking.relevance_files import with_calibration
from tests.servers.http_app import running_app
from tests.servers.mcp_client import ask, over_http
from tests.servers.model_service import ModelService
from tests.servers.model_service import said as model_said
from tests.servers.rerank_server import RerankServer
from tests.serving.http.checks import ok
from tests.workshop import Workshop

TEXTS = {"a.md": "An oak table.", "b.md": "An oak bench.", "c.md": "An oak stool."}
SCORES = {"a.md": 0.9, "b.md": 0.6, "c.md": 0.5}
CURVE = Curve(-2.0, {LOG_ODDS: 2.0})
MEANT = {"a.md": 0.916403, "b.md": 0.233425, "c.md": 0.119203}
"""the logistic function of -2 + 2 ln(p / (1 - p))"""
RETRIEVE = "/api/v1/knowledge/default/retrieve"


def scores(body):
    return [next(SCORES[name] for name, text in TEXTS.items() if text in document) for document in body["documents"]]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("calibrated"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    file = workshop.root / "calibration.json"
    file.write_text(with_calibration(None, Calibration("reranker", "service:m", {"rerank": CURVE}), {}, file.name))
    with RerankServer("cohere", []) as server, ModelService() as model:
        workshop.sections["search"] = {"rerank": "service:m", "calibration": str(file), "cache_entries": 0}
        workshop.sections["rerank"] = {"base_url": server.base_url, "attempts": 1}
        workshop.sections["upstream"] = {"base_url": model.base_url}
        with running_app(workshop.settings) as app:
            with app.resources.follower.reader(wait=60):
                pass
            yield workshop, server, app, model


def close_to(names):
    return [pytest.approx(MEANT[name], abs=1e-5) for name in names]


def test_python_knows_it_embedded_and_remote(place):
    workshop, server, app, _ = place
    for where in (workshop.settings, app.url):
        server.expect(scores, scores)
        with Corpus(where) as corpus:
            everything = corpus.search("oak", k=3, rerank=True)
            likely = corpus.search("oak", k=3, rerank=True, min_relevance=0.3)
        assert [each.relevance for each in everything] == close_to(["a.md", "b.md", "c.md"])
        assert [each.row["filename"] for each in likely] == ["a.md"]


def test_retrieve_compares_it_and_explains_the_rest_with_it(place):
    _, server, app, _ = place
    server.expect(scores, scores)
    asked = {"query": "oak", "rerank": True, "min_score": 0.3, "top_k": 2, "explain": True}
    with app.client() as client:
        told = ok(client.post(RETRIEVE, json=asked))
    assert [each["score"] for each in told["chunks"]] == close_to(["a.md"])
    candidates = told["explanation"]["candidates"]
    assert [each["dropped"] for each in candidates] == [None, "threshold", "beyond-k"]
    # The one beyond k has the meaning of its score as well, not that of its cosine.
    assert [each["relevance"] for each in candidates] == close_to(["a.md", "b.md", "c.md"])
    assert told["explanation"]["search"]["rerank"]["by"] == "service:m"


def test_a_vector_store_has_it_as_score_and_threshold(place):
    _, server, app, _ = place
    server.expect(scores)
    with app.client() as client:
        stores = ok(client.get("/v1/vector_stores"))["data"]
        (store,) = (each["id"] for each in stores if each["metadata"] == {"namespace": "default"})
        options = {"ranker": "auto", "score_threshold": 0.2}
        told = ok(client.post(f"/v1/vector_stores/{store}/search", json={"query": "oak", "ranking_options": options}))
    assert [each["score"] for each in told["data"]] == close_to(["a.md", "b.md"])


def test_dify_has_it_as_score_and_threshold(place):
    _, server, app, _ = place
    server.expect(scores)
    setting = {"top_k": 3, "score_threshold": 0.3}
    with app.client() as client:
        told = ok(
            client.post("/retrieval", json={"knowledge_id": "default", "query": "oak", "retrieval_setting": setting})
        )
    assert [each["score"] for each in told["records"]] == close_to(["a.md"])


def test_a_chat_has_it_in_its_sources(place):
    _, server, app, model = place
    server.expect(scores)
    model.expect(model_said("Oak."))
    with app.client() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "oak"}]}
        told = ok(client.post("/v1/chat/completions", json=body))
    assert [each["score"] for each in told["rag_sources"]] == close_to(["a.md", "b.md", "c.md"])


def test_mcp_has_it_in_its_sources(place):
    _, server, app, _ = place
    server.expect(scores)
    asked = {"query": "oak", "include_sources": True}
    answer = ask(over_http(app.url, None), lambda client: client.call_tool("search_knowledge", asked))
    assert [each["score"] for each in answer.structured_content["results"]] == close_to(["a.md", "b.md", "c.md"])


def test_the_calibration_of_another_reranker_is_not_used(place, tmp_path):
    workshop, server, _, _ = place
    file = tmp_path / "other.json"
    other = Calibration("reranker", "service:other", {"rerank": CURVE})
    file.write_text(json.dumps(json.loads(with_calibration(None, other, {}, file.name))))
    search = workshop.settings.search.model_copy(update={"calibration": str(file)})
    server.expect(scores)
    with Corpus(workshop.settings.model_copy(update={"search": search})) as corpus:
        found = corpus.search("oak", k=3, rerank=True)
    assert [each.relevance for each in found] == pytest.approx([0.9, 0.6, 0.5])
