"""Costs by source and purpose: nothing is lost, doubled or said to be free."""

from datetime import UTC, datetime

import pytest

from parquetry.llm.spending import Ledger, Usage
from parquetry.planning.costs import Cost, as_column, from_column, shared, summed, total_usd, with_rest
from parquetry.planning.monthly_costs import costs_of_run, monthly_costs

SEVERAL = (("a", "docs"), ("a", "web"))


@pytest.mark.parametrize(
    ("total", "weights", "parts"),
    [
        (10, {"a": 1, "b": 1, "c": 1}, [4, 3, 3]),
        (7, {"a": 5, "b": 2}, [5, 2]),
        (3, {"a": 0, "b": 0}, [2, 1]),
        (0, {"a": 5}, [0]),
        (5, {}, []),
        (1_000_003, {"a": 0.1, "b": 0.2}, [333_334, 666_669]),
    ],
)
def test_parts_add_up_to_the_whole(total, weights, parts):
    found = shared(total, weights)
    assert list(found.values()) == parts
    assert sum(found.values()) == (total if weights else 0)


def test_costs_of_one_source_and_purpose_are_added_up_and_nothing_is_left_out():
    costs = [
        Cost("a", "docs", "embed", 10, 0.1),
        Cost("a", "docs", "describe", 5, 0.5),
        Cost("a", "docs", "embed", 20, 0.2),
        Cost(None, None, "embed", 1, 0.0),
        Cost("b", "web", "embed", 0, 0.0),
    ]
    assert summed(costs) == (
        Cost(None, None, "embed", 1, 0.0),
        Cost("a", "docs", "describe", 5, 0.5),
        Cost("a", "docs", "embed", 30, pytest.approx(0.3)),
    )
    assert total_usd(costs) == pytest.approx(0.8)


def test_unknown_price_makes_the_sum_unknown():
    costs = [Cost("a", "docs", "embed", 10, 0.1), Cost("a", "docs", "embed", 10, None)]
    assert summed(costs) == (Cost("a", "docs", "embed", 20, None),)
    assert total_usd(costs) is None


def test_what_the_ledger_holds_beyond_the_sources_belongs_to_no_source():
    ledger = Ledger()
    ledger.note("embed", Usage(3, 100, 0, 1.0))
    ledger.note("describe", Usage(1, 30, 12, 0.5))
    found = with_rest([Cost("a", "docs", "embed", 60, 0.6)], ledger, (), SEVERAL)
    assert found == (
        Cost(None, None, "describe", 42, 0.5),
        Cost(None, None, "embed", 40, pytest.approx(0.4)),
        Cost("a", "docs", "embed", 60, 0.6),
    )
    unknown = with_rest([Cost("a", "docs", "embed", 60, None)], ledger, {"embed"}, SEVERAL)
    assert Cost(None, None, "embed", 40, None) in unknown
    assert total_usd(unknown) is None


def test_what_the_ledger_holds_beyond_the_only_source_is_a_cost_of_it():
    ledger = Ledger()
    ledger.note("embed", Usage(3, 100, 0, 1.0))
    found = with_rest([Cost("a", "docs", "embed", 60, 0.6)], ledger, (), [("a", "docs")])
    assert found == (Cost("a", "docs", "embed", 100, pytest.approx(1.0)),)


def test_rounding_is_no_cost():
    ledger = Ledger()
    ledger.note("embed", Usage(1, 3, 0, 0.1 + 0.2))
    assert with_rest([Cost("a", "docs", "embed", 3, 0.3)], ledger, (), SEVERAL) == (Cost("a", "docs", "embed", 3, 0.3),)


def test_column_gives_back_what_it_was_given():
    costs = (Cost("a", "Ünder", "embed", 3, None), Cost(None, None, "distill", 1, 0.25))
    assert from_column(as_column(costs)) == costs


def run(month, *costs, estimated=None, **columns):
    row = {"kind": "refresh", "namespaces": ["default"], "sources": ["docs"], "tokens": 0, "cost_usd": None}
    at = datetime(2026, month, 15, tzinfo=UTC)
    return row | {"started_at": at, "costs": as_column(costs), "estimated_usd": estimated} | columns


def test_months_hold_their_runs_newest_first_with_what_was_expected():
    months = monthly_costs(
        [
            run(10, Cost("a", "docs", "embed", 10, 0.1), estimated=0.2),
            run(11, Cost("a", "docs", "embed", 20, 0.2), estimated=0.3),
            run(11, Cost("b", "web", "embed", 5, 0.05), estimated=0.1),
            run(11, estimated=9.0),
        ]
    )
    assert [(each.month, each.runs, each.tokens) for each in months] == [("2026-11", 2, 25), ("2026-10", 1, 10)]
    assert (months[0].cost_usd, months[0].estimated_usd) == (pytest.approx(0.25), pytest.approx(0.4))
    unplanned = monthly_costs([run(11, Cost("a", "docs", "embed", 20, 0.2)), run(11, estimated=1.0)])
    assert unplanned[0].estimated_usd is None


@pytest.mark.parametrize(
    ("columns", "cost"),
    [
        ({"tokens": 7, "cost_usd": 0.5}, Cost("default", "docs", "embed", 7, 0.5)),
        ({"tokens": 7, "cost_usd": None}, Cost("default", "docs", "embed", 7, None)),
        ({"tokens": 7, "cost_usd": 0.5, "sources": ["docs", "web"]}, Cost(None, None, "embed", 7, 0.5)),
        ({"tokens": 7, "cost_usd": 0.5, "sources": None}, Cost(None, None, "embed", 7, 0.5)),
        ({"tokens": 7, "cost_usd": 0.5, "kind": "sessions"}, Cost("default", "docs", "distill", 7, 0.5)),
    ],
)
def test_runs_of_earlier_programs_know_their_total(columns, cost):
    assert costs_of_run(run(11) | {"costs": None} | columns) == (cost,)


def test_run_of_an_earlier_program_that_used_nothing_costs_nothing():
    assert costs_of_run(run(11) | {"costs": None, "tokens": None, "cost_usd": None}) == ()
    assert costs_of_run(run(11) | {"costs": None, "tokens": 0, "cost_usd": 0.0}) == ()
