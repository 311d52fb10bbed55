"""Scan the sources and plan: what a refresh has to do, before anything is spent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from knowledge.changes import Change, Force, SourcePlan, plan_source
from knowledge.errors import RefusedError
from knowledge.estimate import Estimate, estimate
from knowledge.model import DocumentRow, Item, Listing, Unlisted
from knowledge.settings import Settings
from knowledge.sources.base import Hashing, Source
from knowledge.sources.registry import Scope
from tasks.models import Model


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What a refresh will do."""

    sources: tuple[SourcePlan, ...]
    estimate: Estimate

    @property
    def changes(self) -> Iterable[Change]:
        """The changes of all sources that may go on, those that need nothing included."""
        return (change for source in self.sources if source.refused is None for change in source.changes)

    @property
    def refused(self) -> tuple[str, ...]:
        return tuple(source.refused for source in self.sources if source.refused is not None)


def list_scope(scope: Scope, source: Source) -> Listing:
    """List one source as far as a refresh concerns it."""
    items: list[Item] = []
    unlisted: list[Unlisted] = []
    for found in source.scan(scope.prefix):
        if isinstance(found, Item):
            items.append(found)
        else:
            unlisted.append(found)
    return Listing(scope.name, scope.namespace, scope.prefix, tuple(items), tuple(unlisted))


def plan_refresh(
    settings: Settings,
    scopes: Sequence[tuple[Scope, Source]],
    current: Sequence[DocumentRow],
    models: Mapping[str, Model],
    *,
    allow_removals: bool = False,
    force: Force | None = None,
) -> RefreshPlan:
    """List every source and compare it with what is published.

    Args:
        settings: limits and chunk sizes.
        scopes: what to refresh, with the sources to list.
        current: the current rows of all namespaces concerned.
        models: namespace -> model of its documents.
        allow_removals: agree to any number of removals.
        force: documents to redo whatever their hashes say.

    Raises:
        SettingsError: a source's place does not exist.
    """
    by_namespace: dict[str, list[DocumentRow]] = defaultdict(list)
    for row in current:
        by_namespace[row.namespace].append(row)
    plans = []
    for scope, source in scopes:
        listing = list_scope(scope, source)
        plans.append(
            plan_source(
                listing,
                by_namespace[scope.namespace],
                models[scope.namespace].fingerprints,
                _hasher(source),
                settings.refresh,
                allow_removals=allow_removals,
                force=force,
            )
        )
    changes = [change for plan in plans if plan.refused is None for change in plan.changes]

    def price(namespace: str) -> float:
        return models[namespace].open().price_per_million_tokens

    return RefreshPlan(tuple(plans), estimate(changes, current, settings.chunking, price))


def check_budget(plan: RefreshPlan, budget_usd: float | None) -> None:
    """Stop before a refresh that would cost more than it may.

    Raises:
        RefusedError: with the estimate and the budget.
    """
    if budget_usd is not None and plan.estimate.cost_usd > budget_usd:
        raise RefusedError(
            f"this refresh would cost about ${plan.estimate.cost_usd:.2f} for {plan.estimate.tokens} tokens, more than "
            f"the budget of ${budget_usd:.2f} (refresh.budget_usd); nothing was spent"
        )


def _hasher(source: Source) -> Callable[[str], str | None]:
    def hash_of(path: str) -> str | None:
        if not isinstance(source, Hashing):
            return None
        try:
            return source.hash(path)
        except OSError:
            # It is read again, with its error contained, when it is fetched.
            return None

    return hash_of
