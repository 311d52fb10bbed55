"""Costs of a run by source and by what was paid for, as the table `runs` keeps them."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from parquetry.llm.spending import Ledger, Purpose

Key = TypeVar("Key", bound=Hashable)
_ROUNDING = 1e-9
"""US dollars below which two sums of the same requests may differ"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one purpose for one source."""

    namespace: str | None
    source: str | None
    """None for what belongs to no source alone, as requests of failed batches in a run of several sources"""
    purpose: Purpose
    tokens: int
    cost_usd: float | None
    """US dollars; None if the price is unknown"""


def summed(costs: Iterable[Cost]) -> tuple[Cost, ...]:
    """Add up the costs of each source and purpose, in the order of their names; what is zero is left out."""
    found: dict[tuple[str, str, Purpose], Cost] = {}
    for cost in costs:
        key = (cost.namespace or "", cost.source or "", cost.purpose)
        other = found.get(key)
        if other is None:
            found[key] = cost
        else:
            usd = None if None in (cost.cost_usd, other.cost_usd) else (cost.cost_usd or 0.0) + (other.cost_usd or 0.0)
            found[key] = Cost(cost.namespace, cost.source, cost.purpose, cost.tokens + other.tokens, usd)
    return tuple(found[key] for key in sorted(found) if found[key].tokens or found[key].cost_usd)


def with_rest(
    costs: Iterable[Cost], ledger: Ledger, unpriced: Collection[Purpose], sources: Collection[tuple[str, str]]
) -> tuple[Cost, ...]:
    """Return the costs of a run with what its ledger holds beyond them, as requests of failed batches.

    The rest is a cost of the run's source if there is only one; otherwise it belongs to no source alone.

    Args:
        costs: costs of sources.
        ledger: every request of the run.
        unpriced: purposes whose price is unknown.
        sources: namespace and name of each source of the run.
    """
    known = summed(costs)
    namespace, source = next(iter(sources)) if len(sources) == 1 else (None, None)
    rest = []
    for purpose, used in ledger.usage.items():
        same = [cost for cost in known if cost.purpose == purpose]
        tokens = max(0, used.input_tokens + used.output_tokens - sum(cost.tokens for cost in same))
        usd = used.cost_usd - sum(cost.cost_usd or 0.0 for cost in same)
        if purpose in unpriced:
            rest.append(Cost(namespace, source, purpose, tokens, None if tokens else 0.0))
        else:
            rest.append(Cost(namespace, source, purpose, tokens, usd if usd > _ROUNDING else 0.0))
    return summed((*known, *rest))


def total_usd(costs: Iterable[Cost]) -> float | None:
    """Return the sum of costs in US dollars; None if a price is unknown."""
    parts = [cost.cost_usd for cost in costs]
    return None if None in parts else sum((part or 0.0 for part in parts), 0.0)


def as_column(costs: Iterable[Cost]) -> str:
    """Return costs as the column `costs` of the table `runs` holds them: a JSON list."""
    return json.dumps([asdict(cost) for cost in costs], ensure_ascii=False)


def from_column(column: str) -> tuple[Cost, ...]:
    """Return the costs in a column `costs` of the table `runs`."""
    rows: list[dict[str, Any]] = json.loads(column)
    return tuple(Cost(**row) for row in rows)


def shared(total: int, weights: Mapping[Key, float]) -> dict[Key, int]:
    """Share out whole units by weights, so that the parts add up to the total.

    Args:
        total: number of units, not negative.
        weights: key -> weight, not negative; all zero counts as all equal.
    """
    whole = sum(weights.values())
    if not weights:
        return {}
    ideal = {key: total * (weight / whole if whole else 1 / len(weights)) for key, weight in weights.items()}
    parts = {key: int(share) for key, share in ideal.items()}
    for key in sorted(ideal, key=lambda each: parts[each] - ideal[each])[: total - sum(parts.values())]:
        parts[key] += 1
    return parts
