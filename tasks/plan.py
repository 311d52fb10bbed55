"""Scan the sources and plan: what a refresh has to do, before anything is spent."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from knowledge.changes import Change, Force, SourcePlan, plan_source
from knowledge.errors import RefusedError
from knowledge.estimate import Estimate, estimate
from knowledge.model import DocumentRow
from knowledge.settings import Settings
from knowledge.sources.base import Hashing, Remembering, Source
from knowledge.sources.local import is_local
from knowledge.sources.registry import Scope
from tasks.listing import list_scopes
from tasks.models import Model
from tasks.retries import Retries


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What a refresh will do."""

    sources: tuple[SourcePlan, ...]
    estimate: Estimate
    empty: tuple[str, ...] = ()
    """of sources that hold nothing and of which nothing is published: where nothing was found, and what to check"""

    @property
    def changes(self) -> Iterable[Change]:
        """The changes of all sources that may go on, those that need nothing included."""
        return (change for source in self.sources if source.refused is None for change in source.changes)

    @property
    def refused(self) -> tuple[str, ...]:
        return tuple(source.refused for source in self.sources if source.refused is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the sources could not be seen."""
        return tuple(warning for source in self.sources for warning in source.warnings)


def plan_refresh(
    settings: Settings,
    scopes: Sequence[tuple[Scope, Source]],
    current: Sequence[DocumentRow],
    models: Mapping[str, Model],
    *,
    allow_removals: bool = False,
    force: Force | None = None,
    retries: Retries | None = None,
) -> RefreshPlan:
    """List every source and compare it with what is published.

    Args:
        settings: limits and chunk sizes.
        scopes: what to refresh, with the sources to list.
        current: the current rows of all namespaces concerned.
        models: namespace -> model of its documents.
        allow_removals: agree to any number of removals.
        force: documents to redo whatever their hashes say.
        retries: of the run, if it is one.

    Raises:
        SettingsError: a source's place does not exist.
    """
    by_namespace: dict[str, list[DocumentRow]] = defaultdict(list)
    for row in current:
        by_namespace[row.namespace].append(row)
    for scope, source in scopes:
        if isinstance(source, Remembering):
            known = by_namespace[scope.namespace]
            source.remember({row.path: row for row in known if row.source == scope.name})
    listings = list_scopes(scopes, retries or Retries(settings.refresh.attempts, time.sleep))
    plans = [
        plan_source(
            listing,
            by_namespace[scope.namespace],
            models[scope.namespace].fingerprints,
            _hasher(source),
            settings.refresh,
            allow_removals=allow_removals,
            force=force,
        )
        for (scope, source), listing in zip(scopes, listings, strict=True)
    ]
    changes = [change for plan in plans if plan.refused is None for change in plan.changes]

    def price(namespace: str) -> float:
        return models[namespace].open().price_per_million_tokens

    empty = tuple(
        nothing_found(scope)
        for (scope, _), listing, plan in zip(scopes, listings, plans, strict=True)
        if listing.complete and not listing.items and not plan.changes
    )
    return RefreshPlan(tuple(plans), estimate(changes, current, settings.chunking, price), empty)


def nothing_found(scope: Scope) -> str:
    """What to look at when a source lists nothing: only a person can tell an empty place from a mistyped one."""
    settings = scope.settings
    place = f"{settings.uri.rstrip('/')}/{scope.prefix}" if scope.prefix else settings.uri
    named = "" if settings.name == settings.uri else f"source {settings.name}: "
    globs = ", its include and exclude globs" if settings.include or settings.exclude else ""
    last = "whether all it holds is hidden" if is_local(settings.uri) else "what the credentials may see"
    return f"{named}no document was found in {place}; check its spelling{globs} and {last}"


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
