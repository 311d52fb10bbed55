"""The ledger of LLM costs, and its budget."""

from __future__ import annotations

import threading

import pytest
from pydantic import ValidationError

from parquetry.errors import RefusedError, SettingsError, TransientError
from parquetry.llm.calls import RetryPolicy
from parquetry.llm.client import SHORT_REPLY_TOKENS, LanguageModel, most_tokens
from parquetry.llm.spending import Ledger, Purpose, Usage
from parquetry.settings.llm import LlmPrice, LlmSettings
from parquetry.settings.sections import parse_settings
from tests.servers.chat_server import ChatServer, Reply, error, said

PRICES = {"price_per_million_input_tokens": 1000.0, "price_per_million_output_tokens": 10_000.0}
COST = 120 / 1000 + 9 / 100
"""cost of one reply of the server, in US dollars"""
QUESTION = [{"role": "user", "content": "Which kiln dries walnut?"}]
WORST = most_tokens(QUESTION) / 1000 + SHORT_REPLY_TOKENS / 100
"""upper bound on the cost of a call, in US dollars"""


def model(server: ChatServer, purpose: Purpose, ledger: Ledger, attempts: int = 1) -> LanguageModel:
    settings = LlmSettings(model="m", base_url=server.url, attempts=attempts, **PRICES)
    return LanguageModel(settings, purpose, ledger, RetryPolicy(attempts, lambda _: None, lambda: 0.0, lambda: 0.0))


def test_calls_of_a_run_are_counted_by_purpose():
    ledger = Ledger()
    with ChatServer([said("a")] * 3) as server:
        distill, compare = model(server, "distill", ledger), model(server, "compare", ledger)
        answer = distill.ask(QUESTION)
        distill.ask(QUESTION)
        compare.ask(QUESTION)
    assert answer.cost_usd == pytest.approx(COST)
    assert set(ledger.usage) == {"distill", "compare"}
    twice = ledger.usage["distill"]
    assert (twice.calls, twice.input_tokens, twice.output_tokens) == (2, 240, 18)
    assert ledger.cost_usd == pytest.approx(3 * COST)


def test_replies_that_were_paid_for_and_thrown_away_are_counted_too():
    ledger = Ledger()
    with ChatServer([said(" "), said("at last")]) as server:
        answer = model(server, "distill", ledger, attempts=2).ask(QUESTION)
    assert (answer.input_tokens, answer.output_tokens) == (240, 18)
    assert ledger.usage["distill"].calls == 2


def test_what_the_service_did_not_answer_costs_nothing():
    ledger = Ledger()
    with ChatServer([error(500, "down")]) as server, pytest.raises(TransientError):
        model(server, "distill", ledger).ask(QUESTION)
    assert ledger.cost_usd == 0
    ledger.begin(0)


def test_a_service_that_does_not_count_is_estimated_and_told_of():
    """A budget without a measurement would never be reached."""
    ledger = Ledger()
    body = {key: value for key, value in said("x" * 400).body.items() if key != "usage"}
    with ChatServer(
        [Reply(200, body), Reply(200, {**body, "usage": {"prompt_tokens": -5, "completion_tokens": 3}})]
    ) as server:
        asked = model(server, "distill", ledger)
        answer = asked.ask(QUESTION)
        other = asked.ask(QUESTION)
    assert (answer.input_tokens, other.input_tokens) == (6, 6)
    assert 100 <= answer.output_tokens <= 200
    (warning,) = ledger.warnings
    assert "does not say how many tokens" in warning


def test_a_spent_budget_refuses_the_next_call_before_it_is_made():
    ledger = Ledger(budget_usd=COST + WORST - 0.001)
    with ChatServer([said("a")]) as server:
        asked = model(server, "distill", ledger)
        asked.ask(QUESTION)
        with pytest.raises(RefusedError, match=r"sessions\.budget_usd"):
            asked.ask(QUESTION)
    assert len(server.bodies) == 1


def test_the_longest_replies_to_what_costs_most_do_not_pass_the_budget():
    """Every byte counts as a token, and every reply is as long as allowed."""
    longest = said("a" * 100)
    longest.body["usage"] = {"prompt_tokens": most_tokens(QUESTION), "completion_tokens": SHORT_REPLY_TOKENS}
    ledger = Ledger(budget_usd=2.5 * WORST)
    with ChatServer([longest] * 2) as server:
        asked = model(server, "distill", ledger)
        asked.ask(QUESTION)
        asked.ask(QUESTION)
        with pytest.raises(RefusedError):
            asked.ask(QUESTION)
    assert ledger.cost_usd == pytest.approx(2 * WORST)


def test_a_budget_of_nothing_allows_nothing():
    with pytest.raises(RefusedError):
        Ledger(0).begin(0)


def test_calls_at_the_same_time_reserve_what_they_will_cost():
    ledger = Ledger(budget_usd=1.0)
    granted, start = [], threading.Barrier(8)

    def take() -> None:
        start.wait()
        try:
            ledger.begin(0.3)
        except RefusedError:
            return
        granted.append(1)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 3
    ledger.settle("distill", 0.3, Usage(1, 10, 1, 0.05))
    ledger.begin(0.3)


def test_parts_of_a_budget_are_never_more_than_what_is_free():
    ledger = Ledger(1.0)
    ledger.begin(0.2)
    assert ledger.allot(4) == pytest.approx(0.2)
    assert ledger.allot(4, least_usd=0.5) == pytest.approx(0.5)
    assert ledger.allot(2, least_usd=0.5) == pytest.approx(0.1), "all that is free"
    with pytest.raises(RefusedError):
        ledger.begin(0.01)
    ledger.release(0.5)
    assert ledger.free_usd == pytest.approx(0.5)
    assert Ledger().free_usd is None


def test_part_of_a_budget_that_is_written_off_is_reserved_for_good_and_no_cost():
    ledger = Ledger(1.0)
    part = ledger.allot(2)
    ledger.write_off(part)
    assert (ledger.free_usd, ledger.written_off_usd, ledger.cost_usd) == (0.5, 0.5, 0.0)


def test_cheapest_refused_call_is_known():
    """A part of a budget that is smaller would allow no call either."""
    ledger = Ledger(0.1)
    assert ledger.least_refused_usd is None
    for usd in (0.4, 0.2, 0.3):
        with pytest.raises(RefusedError):
            ledger.begin(usd)
    assert ledger.least_refused_usd == 0.2


def test_a_budget_without_a_price_is_a_mistake_in_the_settings():
    """The budget would have no effect, and nothing would report it."""
    with pytest.raises(SettingsError, match="price_per_million_input_tokens"):
        LanguageModel(LlmSettings(model="m", base_url="http://127.0.0.1:9"), "distill", Ledger(5.0))


LISTED = {"usd_per_million_input_tokens": 1000.0, "usd_per_million_output_tokens": 10_000.0}


def test_price_of_the_model_in_the_table_comes_before_the_one_of_all():
    table = [
        {"model": "n", "usd_per_million_input_tokens": 1, "usd_per_million_output_tokens": 1},
        {"model": "m", **LISTED, "as_of": "2026-07-03"},
    ]
    ledger = Ledger(50.0)
    with ChatServer([said("a")]) as server:
        settings = parse_settings(
            {"llm": {"model": "m", "base_url": server.url, "price_per_million_input_tokens": 7, "prices": table}},
            "test",
        ).llm
        assert LanguageModel(settings, "distill", ledger).ask(QUESTION).cost_usd == pytest.approx(COST)
    told = "$1000 per million tokens read, $10000 written, 2026-07-03"
    assert (settings.priced, str(settings.price)) == (True, told)
    of_all = str(settings.model_copy(update={"model": "unlisted"}).price)
    assert of_all == "$7 per million tokens read, $0 written"


def test_model_that_the_table_does_not_list_has_no_price():
    """The price of another model would be a wrong one, and a budget by it would not hold."""
    settings = LlmSettings(model="m", base_url="http://127.0.0.1:9", prices=(LlmPrice(model="n", **LISTED),))
    assert (settings.priced, settings.price) == (False, None)
    with pytest.raises(SettingsError, match=r"a price of m in llm\.prices"):
        LanguageModel(settings, "distill", Ledger(5.0))


def test_model_with_two_prices_is_a_mistake_in_the_settings():
    with pytest.raises(ValidationError, match="the model m has two"):
        LlmSettings(prices=[{"model": "m", **LISTED}] * 2)


def test_a_warning_is_told_once():
    ledger = Ledger()
    ledger.warn("a")
    ledger.warn("b")
    ledger.warn("a")
    assert ledger.warnings == ("a", "b")
