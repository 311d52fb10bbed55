"""The budget holds during a run: no request is sent that could exceed it, and paid work is not lost."""

from __future__ import annotations

import json

import pytest

from parquetry.errors import SettingsError
from tests.flows.pipelines.test_outages import DOCS, Desk
from tests.servers.embedding_server import EmbeddingServer, counting

pytestmark = pytest.mark.slow

PRICE = 1000.0
"""US dollars per million tokens"""


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capsys)


def paid(desk, server, budget="", price=f"price_per_million_tokens = {PRICE}", more=""):
    embedding = f'[embedding]\nbase_url = "{server.url}"\napi_key = "x"\nattempts = 1\ndimension = 8\n{price}\n{more}'
    desk.settings(embedding, DOCS, embedder="openai:m", refresh=budget)


def spent(server) -> float:
    return sum(len(text.encode()) for request in server.requests for text in request.inputs) * PRICE / 1e6


def write_notes(desk, count=12):
    for number in range(count):
        desk.write(f"docs/{number:02}.md", f"Note {number:02}: " + f"{number:02}" * 40)


@pytest.mark.parametrize("workers", [1, 4])
def test_budget_is_never_passed_and_the_next_run_buys_only_the_rest(desk, workers):
    write_notes(desk)
    each = 89 * PRICE / 1e6
    budget = 6.5 * each
    with EmbeddingServer(counting) as server:
        paid(desk, server, f"budget_usd = {budget}\nworkers = {workers}")
        code, report = desk.refresh()
        first = spent(server)
        assert first <= budget
        assert code == 3
        done = report["documents"]["added"]
        assert 5 <= done <= 6
        assert len(desk.published()) == done
        assert report["cost_usd"] == pytest.approx(first, abs=1e-6)
        assert report["failures"] == []
        (refusal,) = report["refused"]
        assert refusal.startswith(f"the budget of ${budget:g} (refresh.budget_usd) is reached, ${first:.4f} spent: ")
        assert f"{12 - done} documents stay as before" in refusal
        assert desk.runs() == [("refused", refusal)]

        paid(desk, server)
        code, report = desk.refresh()
        assert (code, report["documents"]["added"], len(desk.published())) == (0, 12 - done, 12)
        texts = [text for request in server.requests for text in request.inputs]
        assert len(texts) == len(set(texts)) == 12, "nothing is paid for twice"


def test_document_that_is_bought_in_part_stays_as_it_was_and_its_vectors_are_kept(desk):
    desk.write("docs/long.md", "\n\n".join(f"{word} " * 200 for word in ("oak", "elm", "ash", "fir", "yew")))
    with EmbeddingServer(counting) as server:
        paid(desk, server)
        _, printed = desk("plan", "--json")
        likely = json.loads(printed.out)["likely"]["cost_usd"]
        paid(desk, server, f"budget_usd = {2 * likely}", more="batch_inputs = 1")
        code, report = desk.refresh()
        bought = len(server.requests)
        assert (code, report["documents"]["added"], desk.published()) == (3, 0, [])
        assert 0 < bought < 5
        assert spent(server) <= 2 * likely
        paid(desk, server)
        code, report = desk.refresh()
        assert (code, report["chunks"]["reused"], report["chunks"]["embedded"]) == (0, bought, 5 - bought)


def test_refresh_that_will_likely_cost_more_does_not_start(desk):
    write_notes(desk)
    with EmbeddingServer(counting) as server:
        paid(desk, server, "budget_usd = 0.00001")
        code, printed = desk("refresh", "--direct")
        assert server.requests == []
    assert code == 3
    assert "more than the budget of $1e-05 (refresh.budget_usd); nothing was spent" in printed.err
    assert not (desk.folder / "corpus").exists()


def test_budget_without_a_price_is_refused_with_the_key_to_set(desk):
    write_notes(desk, 1)
    with EmbeddingServer(counting) as server:
        paid(desk, server, "budget_usd = 5", price="")
        code, printed = desk("refresh", "--direct")
        assert server.requests == []
        assert code == 2
        assert "set embedding.price_per_million_tokens (0 if it costs nothing), or remove the budget" in printed.err
        paid(desk, server, "budget_usd = 0", price="price_per_million_tokens = 0")
        code, report = desk.refresh()
    assert (code, report["cost_usd"], report["documents"]["added"]) == (0, 0, 1)


def test_unknown_price_is_said_to_be_unknown_and_no_number(desk):
    write_notes(desk, 1)
    with EmbeddingServer(counting) as server:
        paid(desk, server, price="")
        _, printed = desk("plan")
        assert printed.out.count("cost unknown (no price is set)") == 3
        assert "$" not in printed.out
        _, printed = desk("plan", "--json")
        planned = json.loads(printed.out)
        assert (planned["estimate"]["cost_usd"], planned["likely"]["cost_usd"]) == (None, None)
        _, printed = desk("refresh", "--direct")
        assert "tokens, cost unknown (no price is set))" in printed.out
        desk.write("docs/more.md", "More.")
        _, report = desk.refresh()
        assert report["cost_usd"] is None
    _, printed = desk("sql", "SELECT cost_usd FROM runs", "--json")
    assert json.loads(printed.out)["rows"] == [[None], [None]]


def test_local_model_costs_nothing_and_needs_no_price(desk):
    write_notes(desk, 1)
    desk.settings(DOCS, refresh="budget_usd = 0")
    code, report = desk.refresh()
    assert (code, report["cost_usd"], report["documents"]["added"]) == (0, 0, 1)


def test_sessions_with_a_budget_need_the_price_of_their_embedder():
    from parquetry.flows.pipelines.sessions import SessionsRequest, check_sessions_request
    from parquetry.settings.sections import parse_settings

    settings = parse_settings(
        {
            "corpus": {"embedder": "openai:m"},
            "embedding": {"base_url": "http://127.0.0.1:9/v1", "dimension": 8},
            "llm": {"model": "m", "base_url": "http://127.0.0.1:9/v1", "price_per_million_input_tokens": 1.0},
            "sessions": {"budget_usd": 1.0},
            "source": [{"name": "chats", "uri": ".", "content": "sessions", "visibility": "public"}],
        },
        "test",
    )
    with pytest.raises(SettingsError, match=r"sessions\.budget_usd.*openai:m.*price_per_million_tokens"):
        check_sessions_request(SessionsRequest(settings))
