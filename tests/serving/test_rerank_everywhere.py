"""A rerank service behind the command line, the Python API and the HTTP API: the same order, and the same errors."""

import json

import pytest

from parquetry import Corpus, ServiceRefused, SettingsError, TransientError
from parquetry.errors import OutageError
from tests.servers.chat_server import error
from tests.servers.http_app import running_app
from tests.servers.rerank_server import RerankServer
from tests.serving.http.checks import ok, problem
from tests.serving.program import start
from tests.workshop import Workshop

KEY = "rk-0123456789abcdef"
TEXTS = {"a.md": "An oak table.", "b.md": "An oak bench.", "c.md": "An oak stool."}
RETRIEVE = "/api/v1/knowledge/default/retrieve"
PRICE = 2.0


@pytest.fixture(scope="module")
def server():
    with RerankServer("cohere", [], KEY) as running:
        yield running


@pytest.fixture(scope="module")
def workshop(tmp_path_factory, server):
    workshop = Workshop(tmp_path_factory.mktemp("rerank"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    workshop.sections["search"] = {"rerank": "service:rerank-v3.5", "cache_entries": 0}
    workshop.sections["rerank"] = {
        "base_url": server.base_url,
        "api_key": KEY,
        "attempts": 1,
        "price_per_thousand_searches": PRICE,
    }
    return workshop


@pytest.fixture(scope="module")
def app(workshop):
    with running_app(workshop.settings) as running:
        with running.resources.follower.reader(wait=60):
            pass
        yield running


@pytest.fixture
def client(app):
    with app.client() as client:
        yield client


@pytest.fixture
def settings_file(workshop):
    """Write the settings down for the command line."""
    lines = [f'[corpus]\nroot = "{workshop.settings.corpus.root}"']
    for name in ("search", "rerank"):
        values = [f"{key} = {json.dumps(value)}" for key, value in workshop.sections[name].items()]
        lines.append("\n".join([f"[{name}]", *values]))
    file = workshop.root / "parquetry.toml"
    file.write_text("\n".join(lines))
    return file


def names(results):
    return [each.row["filename"] for each in results]


def ranked(server, *best):
    """Script scores that bring these files to the front, whatever the order of the first stage is."""

    def scores(body):
        order = [next(name for name, text in TEXTS.items() if text in document) for document in body["documents"]]
        return [0.9 - 0.3 * best.index(name) for name in order]

    server.expect(scores)


def test_all_interfaces_rank_by_the_service(server, workshop, app, client):
    ranked(server, "c.md", "a.md", "b.md")
    with Corpus(workshop.settings) as corpus:
        embedded = corpus.search("oak", k=3, rerank=True)
    ranked(server, "c.md", "a.md", "b.md")
    with Corpus(app.url) as corpus:
        remote = corpus.search("oak", k=3, rerank=True)
    ranked(server, "c.md", "a.md", "b.md")
    told = ok(client.post(RETRIEVE, json={"query": "oak", "rerank": True}))
    assert names(embedded) == names(remote) == ["c.md", "a.md", "b.md"]
    assert [each.relevance for each in embedded] == pytest.approx([0.9, 0.6, 0.3])
    assert [each.relevance for each in remote] == pytest.approx([0.9, 0.6, 0.3])
    assert [each["score"] for each in told["chunks"]] == pytest.approx([0.9, 0.6, 0.3])


def test_the_least_score_is_compared_with_the_services(server, client):
    ranked(server, "b.md", "c.md", "a.md")
    told = ok(client.post(RETRIEVE, json={"query": "oak", "rerank": True, "min_score": 0.5}))
    assert [each["score"] for each in told["chunks"]] == pytest.approx([0.9, 0.6])


def test_an_explanation_over_http_says_what_reranking_took(server, client):
    """The explanation asks once more than the search."""
    ranked(server, "b.md", "c.md", "a.md")
    ranked(server, "b.md", "c.md", "a.md")
    told = ok(client.post(RETRIEVE, json={"query": "oak", "rerank": True, "explain": True}))["explanation"]
    used = told["search"]["rerank"]
    assert (used["by"], used["candidates"], used["calls"]) == ("service:rerank-v3.5", 3, 1)
    assert used["cost_usd"] == PRICE / 1000
    assert [each["rerank"] for each in told["candidates"]] == pytest.approx([0.9, 0.6, 0.3])


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [(error(500, "down"), 503, "service-failed"), (error(429, "slow down"), 503, "rate-limited")],
)
def test_an_outage_is_a_503_and_never_the_order_of_the_first_stage(server, client, reply, status, reason):
    server.expect(reply)
    told = problem(client.post(RETRIEVE, json={"query": "oak", "rerank": True}), status, reason)
    assert "chunks" not in told


def test_a_refused_key_is_a_502_without_the_key(server, client):
    server.expect(error(401, f"unknown key {KEY}"))
    response = client.post(RETRIEVE, json={"query": "oak", "rerank": True})
    problem(response, 502, "service-failed")
    assert KEY not in response.text


def test_python_raises_what_happened(server, workshop, app):
    with Corpus(workshop.settings) as corpus:
        server.expect(error(503, "down"))
        with pytest.raises(TransientError, match="503"):
            corpus.search("oak", rerank=True)
        server.expect(error(401, "no"))
        with pytest.raises(ServiceRefused, match="PARQUETRY_RERANK_API_KEY"):
            corpus.search("oak", rerank=True)
        with pytest.raises(SettingsError, match="there is none in words"):
            corpus.search(" ", rerank=True)
    with Corpus(app.url) as corpus:
        server.expect(error(503, "down"))
        with pytest.raises((TransientError, OutageError), match="503"):
            corpus.search("oak", rerank=True)


@pytest.mark.slow
def test_the_command_line_ranks_by_the_service_and_fails_with_it(server, settings_file):
    ranked(server, "c.md", "a.md", "b.md")
    told = start("search", "--config", settings_file, "oak", "--rerank", "--explain", "--json")
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    assert [each["filename"] for each in answer["results"]] == ["c.md", "a.md", "b.md"]
    assert answer["explanation"]["rerank"]["cost_usd"] == PRICE / 1000
    for status in (500, 401):
        server.expect(error(status, f"not with {KEY}"))
        failed = start("search", "--config", settings_file, "oak", "--rerank")
        assert failed.returncode != 0
        assert failed.stdout == ""
        assert str(status) in failed.stderr
        assert KEY not in failed.stderr
        assert failed.stderr.strip().count("\n") == 0
