"""Workers that are lost while they send texts through a batch API or take results, and budgets that hold for all."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from parquetry.embed.base import no_gate
from parquetry.errors import OutageError, RefusedError, SettingsError, WorkerLost
from parquetry.settings.sections import override
from parquetry.tasks.documents.remote import carry_out
from tests.flows.pipelines.batch_workshop import (
    MOST,
    PRICE,
    TEXTS,
    WORDS,
    age,
    check_all_is_there,
    records,
)
from tests.tasks.documents.batch_orders import (
    TOKENS,
    WAITS,
    is_for_results,
    refresh,
    sent,
    server,
    workshop,
)
from tests.tasks.documents.orders_engine import OrdersEngine, another_process

pytestmark = pytest.mark.slow
__all__ = ["server", "workshop"]


def executed_again(runs: dict[int, int]):
    """Return what loses the first execution of every batch of documents after it has done everything."""

    def execute(execution, number):
        if number not in runs:
            runs[number] = 1
            with another_process():
                execution()
        return execution()

    return execute


def test_worker_that_is_lost_after_it_sent_its_batch_costs_nothing(workshop, server):
    report = refresh(workshop, OrdersEngine(executed_again({})))
    assert sent(server) == Counter(TEXTS)
    assert report.suspended[0].startswith("6 documents wait for 3 batches of 6 requests")
    server.complete()
    assert refresh(workshop).documents.added == 6
    check_all_is_there(workshop, server)


def test_worker_that_is_lost_with_an_allowance_does_not_make_the_run_pass_its_budget(workshop, server):
    workshop.sections["batch_api"] |= WAITS
    workshop.sections["refresh"] |= {"budget_usd": 8 * MOST, "workers": 1}
    server.ends_at_once = True
    report = refresh(workshop, OrdersEngine(executed_again({})))
    assert len(sent(server)) == 2, "all that was free was reserved for the lost worker"
    assert f"up to ${8 * MOST:.4f} that they may have spent is in no report" in str(report.warnings)
    assert isinstance(report.error, RefusedError)
    assert report.work.cost_usd == pytest.approx(TOKENS / 3 * PRICE / 2e6)
    workshop.sections["refresh"] |= {"budget_usd": 20.0}
    assert refresh(workshop).documents.added == 6
    check_all_is_there(workshop, server)


def test_worker_that_is_lost_between_claim_and_decision_holds_its_texts_back_for_ten_minutes(workshop, server):
    workshop.sections["refresh"] |= {"batch_documents": 6}

    def lost(execution, _):
        execution()
        for file in Path(workshop.settings.corpus.root, "batches").glob("*-[ds]e*.json"):
            file.unlink()
        server.batches.clear()
        with another_process():
            return execution()

    report = refresh(workshop, OrdersEngine(lost))
    assert [path.name for path in Path(workshop.settings.corpus.root, "batches").iterdir()] == ["00000001-claim.json"]
    assert report.suspended[0].startswith("6 documents wait for 1 batch of 6 requests")
    assert refresh(workshop).error.exit_code == 6
    assert server.batches == []
    age(workshop)
    refresh(workshop)
    assert sent(server) == Counter(TEXTS)
    server.complete()
    refresh(workshop)
    check_all_is_there(workshop, server)


@pytest.mark.parametrize("is_told", [True, False])
def test_results_that_a_lost_worker_took_are_counted_once(workshop, server, is_told):
    """It is lost once the end of the batch is recorded; another execution finds nothing to do, or there is none."""
    refresh(workshop)
    server.complete()

    def lost(execution, _):
        if not is_for_results(engine.orders[-1]):
            return execution()
        with another_process():
            execution()
        if is_told:
            return execution()
        raise WorkerLost("worker-lost", "gone")

    engine = OrdersEngine(lost)
    report = refresh(workshop, engine)
    assert (report.error, report.documents.added) == (None, 6)
    assert sum(cost.tokens for cost in report.costs) == TOKENS
    check_all_is_there(workshop, server)


def test_results_that_no_worker_could_take_stay_at_the_service(workshop, server):
    refresh(workshop)
    server.complete()

    def lost(execution, _):
        if is_for_results(engine.orders[-1]):
            raise WorkerLost("worker-lost", "gone")
        return execution()

    engine = OrdersEngine(lost)
    report = refresh(workshop, engine)
    assert isinstance(report.error, OutageError)
    assert "results of batch 1 cannot be read: " in str(report.error)
    assert (report.documents.added, server.ordinary, sent(server)) == (0, [], Counter(TEXTS))
    assert refresh(workshop).documents.added == 6
    check_all_is_there(workshop, server)


@pytest.mark.parametrize("workers", [1, 2])
def test_budget_is_reserved_by_what_workers_send_and_never_passed(workshop, server, workers):
    workshop.sections["refresh"] |= {"budget_usd": 3.1 * MOST, "workers": workers}
    report = refresh(workshop)
    assert isinstance(report.error, RefusedError)
    assert sum(sent(server).values()) == 3, "a text more would not have been too much"
    assert server.ordinary == []
    assert not list((workshop.root / "corpus" / "orders").iterdir())
    server.complete()
    report = refresh(workshop)
    assert report.documents.added == 3
    assert sum(sent(server).values()) == 6, "what the first run reserved is not charged to the second"
    server.complete()
    refresh(workshop)
    check_all_is_there(workshop, server)


def test_documents_beyond_an_allowance_are_sent_before_the_run_ends(workshop, server):
    """The reservation for another order is free once that has reported."""
    workshop.sections["refresh"] |= {"budget_usd": 6.1 * MOST, "workers": 2}
    report = refresh(workshop, engine := OrdersEngine())
    assert max(engine.executed) == 3, "no document was held back"
    assert (report.error.exit_code, report.refused, sent(server)) == (6, (), Counter(TEXTS))
    assert report.suspended[0].startswith("6 documents wait for 4 batches of 6 requests")


def test_what_batches_cost_less_than_reserved_is_free_for_the_documents_that_wait(workshop, server):
    workshop.sections["batch_api"] |= WAITS
    workshop.sections["refresh"] |= {"budget_usd": 6.1 * MOST, "workers": 2}
    server.ends_at_once = True
    report = refresh(workshop)
    assert (report.documents.added, report.error) == (6, None)
    check_all_is_there(workshop, server)


def test_documents_that_were_held_back_are_sent_once_batches_have_cost_less_than_reserved(workshop, server):
    """They are published in the same run, if it waits; no two of its batches have the same number."""
    workshop.sections["batch_api"] |= WAITS
    workshop.sections["refresh"] |= {"budget_usd": 4.1 * MOST, "workers": 1}
    server.ends_at_once = True
    report = refresh(workshop, engine := OrdersEngine())
    assert (report.documents.added, report.error) == (6, None)
    assert report.batches[2].endswith("answered"), "all were sent at once"
    numbers = [told["batch"]["number"] for told in map(json.loads, engine.orders) if "batch" in told]
    assert len(numbers) == len(set(numbers))
    check_all_is_there(workshop, server)


def test_worker_with_another_price_stops_the_run(workshop, server):
    refresh(workshop, engine := OrdersEngine())
    server.complete()
    cheaper = override(workshop.settings, {"embedding": {"price_per_million_tokens": 1.0}})
    with pytest.raises(SettingsError, match="another price for openai:m"):
        carry_out(engine.orders[0], cheaper, no_gate)
    assert records(workshop).last() == 3
    assert len(WORDS) == 6
