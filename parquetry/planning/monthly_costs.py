"""Costs of runs by month, source and purpose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from parquetry.llm.spending import Purpose
from parquetry.planning.costs import Cost, from_column, summed, total_usd


@dataclass(frozen=True, slots=True)
class MonthlyCosts:
    """The costs of the runs that started in one month (UTC)."""

    month: str
    """year and month: `2026-11`"""
    runs: int
    """runs that used tokens or cost something"""
    costs: tuple[Cost, ...]
    """by source and purpose; without a source where a run does not tell which of several it was"""
    estimated_usd: float | None
    """likely costs by the plans of these runs; None if a run has none, as one that ended before its plan"""

    @property
    def tokens(self) -> int:
        return sum(cost.tokens for cost in self.costs)

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None if a price was unknown."""
        return total_usd(self.costs)

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry costs --json` prints for a month."""
        return {
            "month": self.month,
            "runs": self.runs,
            "tokens": self.tokens,
            "cost_usd": rounded(self.cost_usd),
            "estimated_usd": rounded(self.estimated_usd),
            "sources": [
                {
                    "namespace": cost.namespace,
                    "source": cost.source,
                    "purpose": cost.purpose,
                    "tokens": cost.tokens,
                    "cost_usd": rounded(cost.cost_usd),
                }
                for cost in self.costs
            ],
        }


def costs_of_run(run: Mapping[str, Any]) -> tuple[Cost, ...]:
    """Return the costs of a row of the table `runs`.

    Runs of earlier programs know their total alone; it is that of their source, if they had only one.
    """
    if run["costs"] is not None:
        return from_column(run["costs"])
    namespaces, sources = list(run["namespaces"] or ()), list(run["sources"] or ())
    is_alone = len(namespaces) == len(sources) == 1
    namespace = namespaces[0] if is_alone else None
    source = sources[0] if is_alone else None
    purpose: Purpose = "distill" if run["kind"] == "sessions" else "embed"
    return summed([Cost(namespace, source, purpose, run["tokens"] or 0, run["cost_usd"])])


def monthly_costs(runs: Iterable[Mapping[str, Any]]) -> tuple[MonthlyCosts, ...]:
    """Return the costs of each month with runs, the newest first.

    Args:
        runs: rows of the table `runs`.
    """
    by_month: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run in runs:
        by_month[f"{run['started_at'].astimezone(UTC):%Y-%m}"].append(run)
    return tuple(_month(month, by_month[month]) for month in sorted(by_month, reverse=True))


def _month(month: str, runs: Iterable[Mapping[str, Any]]) -> MonthlyCosts:
    paid = [(run, costs) for run in runs if (costs := costs_of_run(run))]
    estimates = [run["estimated_usd"] for run, _ in paid]
    estimated = None if None in estimates else sum(estimates, 0.0)
    return MonthlyCosts(month, len(paid), summed(cost for _, costs in paid for cost in costs), estimated)


def rounded(cost_usd: float | None) -> float | None:
    """Round US dollars for output."""
    return None if cost_usd is None else round(cost_usd, 6)
