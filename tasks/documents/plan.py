"""Scan the sources and plan a refresh before anything is spent."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from parquetry import ids
from parquetry.embed.base import Worst
from parquetry.embed.prices import Price
from parquetry.embed.registry import calls_service, price_of, worst_of
from parquetry.model import DocumentRow, Failure, Listing
from parquetry.planning.diff import Change, Reindex, SourcePlan, plan_source
from parquetry.planning.estimate import Estimate, Ratios, estimate, extension_of, sent_as_batches
from parquetry.planning.kept import KeptDocuments
from parquetry.planning.outline import DocumentOutline
from parquetry.planning.rows import failure_of
from parquetry.planning.tally import Tally, tally_of
from parquetry.planning.unchanged import ScanPass
from parquetry.planning.views import joined
from parquetry.settings.sections import Settings
from parquetry.sources.base import Hashing, Source
from parquetry.sources.local.source import is_local
from parquetry.sources.nesting import place_in, told
from parquetry.sources.registry import Scope
from parquetry.storage.lake.current import CurrentRows
from parquetry.tasks.budget import check_budget
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.listing import list_scopes
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.published_state import PublishedState
from parquetry.tasks.documents.run import BUDGET_KEY
from parquetry.tasks.documents.spooled import spooled
from parquetry.tasks.engine.retries import Retries


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """The plan of a refresh."""

    sources: tuple[SourcePlan, ...]
    estimate: Estimate
    empty: tuple[str, ...] = ()
    """hints for empty sources of which nothing is published: the place searched, and what to check"""
    known: Sequence[DocumentRow] = ()
    """current rows of all documents that need work; many are in a file"""

    @property
    def changes(self) -> Sequence[Change]:
        """The changes of all sources that may proceed, including unchanged documents."""
        return joined(
            changes
            for source in self.sources
            for changes in ((source.changes if source.refused is None else ()), source.handed_over)
        )

    @property
    def to_do(self) -> int:
        """Number of changes that need work."""
        return sum(tally.to_do for _, tally in self.tallies())

    def tallies(self) -> Iterator[tuple[SourcePlan, Tally]]:
        """Yield the tallies of `changes`, with the sources that they are of."""
        for source in self.sources:
            if source.refused is None:
                yield source, tally_of(source.changes)
            yield source, tally_of(source.handed_over)

    @property
    def refused(self) -> tuple[str, ...]:
        return tuple(source.refused for source in self.sources if source.refused is not None)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Documents that sources leave to sources inside them, one line each."""
        return tuple(told(source.source, source.left_out) for source in self.sources if source.left_out)

    @property
    def kept(self) -> tuple[KeptDocuments, ...]:
        """Documents that are not removed because part of their source could not be seen."""
        return tuple(kept for source in self.sources for kept in source.kept)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Parts of sources that could not be seen, one line each."""
        return tuple(warning for source in self.sources for warning in source.warnings)


def plan_refresh(
    settings: Settings,
    scopes: Sequence[tuple[Scope, Source]],
    current: CurrentRows,
    models: Mapping[str, Model],
    *,
    allow_removals: bool = False,
    force: Reindex | None = None,
    retries: Retries | None = None,
    rehash: Fetching | None = None,
    foreseen: Callable[[Sequence[Listing]], None] = lambda _: None,
) -> RefreshPlan:
    """List every source and compare it with what is published.

    Rows of documents that need work, listed items and changes wait in files if they are many.

    Args:
        settings: limits and chunk sizes.
        scopes: scopes to refresh, with the sources to list.
        current: the current rows of all namespaces concerned.
        models: namespace -> model of its documents.
        allow_removals: True to allow any number of removals.
        force: documents to process again, regardless of their hashes.
        retries: retries of the run; None outside a run.
        rehash: fetcher used to compare the bytes of every published document; None for change tokens alone.
        foreseen: receives the listings with documents that may have to be read, as soon as everything is listed.

    Raises:
        SettingsError: the place of a source does not exist.
    """
    states = [
        PublishedState(each, source, models[each.namespace].fingerprints, force, rehash) for each, source in scopes
    ]
    paths = _named_paths(states)
    ratios, sizes = _survey(states, current, paths)
    passes, listings = _listed(states, scopes, retries or Retries(settings.refresh.attempts, time.sleep), foreseen)
    _take_rows(states, passes, listings, current, paths)
    for state, listing in zip(states, listings, strict=True):
        state.hash_listed(listing, sizes[listing.namespace])
    twins = current.holding(each for state in states for each in state.hashes.values() if each)
    plans = [
        plan_source(
            listing,
            state.known(),
            state.fingerprints,
            state.hash_of,
            settings.refresh,
            elsewhere=(row for row in twins if row.namespace == state.scope.namespace),
            allow_removals=allow_removals,
            force=force,
            owner_of=state.owner_of,
            missing=state.missing(scan_pass, current, paths),
            rehash=rehash is not None,
            keep=partial(spooled, what="plan"),
        )
        for state, listing, scan_pass in zip(states, listings, passes, strict=True)
    ]
    empty = tuple(nothing_found(state.scope) for state, plan in zip(states, plans, strict=True) if plan.found_nothing)
    costs = _estimated(plans, ratios, settings, as_batches=force is None)
    return RefreshPlan(tuple(plans), costs, empty, joined(state.known() for state in states))


def _named_paths(states: Sequence[PublishedState]) -> frozenset[str] | None:
    """Return the paths of all documents concerned; None if a scope is not a list of them, or redoes others."""
    if all(state.scope.paths and not state.is_forced for state in states):
        return frozenset().union(*(state.scope.paths for state in states))
    return None


def _listed(
    states: Sequence[PublishedState],
    scopes: Sequence[tuple[Scope, Source]],
    retries: Retries,
    foreseen: Callable[[Sequence[Listing]], None],
) -> tuple[list[ScanPass], Sequence[Listing]]:
    """List every source; return what was compared with the rows that a state remembers, and the listings."""
    for state in states:
        state.remember_rows()
    passes = [ScanPass(state.unchanged) for state in states]
    listings = list_scopes(scopes, retries, passes)
    if found := [listing for listing in listings if listing.items]:
        foreseen(found)
    return passes, listings


def _take_rows(
    states: Sequence[PublishedState],
    passes: Sequence[ScanPass],
    listings: Sequence[Listing],
    current: CurrentRows,
    paths: frozenset[str] | None,
) -> None:
    """Give every source the rows of the documents that were not listed as they are stored."""
    needing_work = [
        scan_pass.needing_work(complete=listing.shows_removals)
        for scan_pass, listing in zip(passes, listings, strict=True)
    ]
    if not any(needing_work):
        return
    by_source: dict[tuple[str, str], list[tuple[PublishedState, frozenset[int]]]] = defaultdict(list)
    for state, hashes in zip(states, needing_work, strict=True):
        by_source[state.key].append((state, hashes))

    def takers(row: DocumentOutline | DocumentRow) -> list[PublishedState]:
        found = by_source.get((row.namespace, row.source), ())
        path = ids.memory_hash(row.path) if found else 0
        return [state for state, hashes in found if path in hashes and state.is_settled(row)]

    _give(current, (row.document_id for row in current.outlines(paths) if takers(row)), takers)


def _give(
    current: CurrentRows,
    document_ids: Iterable[str],
    takers: Callable[[DocumentOutline | DocumentRow], Sequence[PublishedState]],
) -> None:
    """Give the rows of documents to the sources that take them."""
    for row in current.each_named(document_ids):
        for state in takers(row):
            state.rows.append(row)


def _estimated(plans: Sequence[SourcePlan], ratios: Ratios, settings: Settings, *, as_batches: bool) -> Estimate:
    """Estimate the costs; without batches for a reindex, which does at once what it is asked for."""
    prices: dict[str, Price] = {}

    def price(namespace: str) -> float | None:
        embedder = settings.embedder_of(namespace)
        found = price_of(embedder, settings.embedding)
        if found is None:
            return None
        prices[embedder] = found
        return found.usd_per_million_tokens

    def worst(namespace: str) -> Worst:
        return worst_of(settings.embedder_of(namespace))

    changes = chain.from_iterable(plan.changes for plan in plans if plan.refused is None)
    share = settings.batch_api.price_share
    found = estimate(changes, ratios, settings.chunking, settings.embedding, worst, price, share)
    priced = replace(found, prices=prices)
    return _sent(priced, settings) if as_batches else priced


def _sent(found: Estimate, settings: Settings) -> Estimate:
    """Return an estimate with the embedders whose texts are sent to their batch API."""
    batches = settings.batch_api

    def takes(embedder: str, tokens: int) -> bool:
        return calls_service(embedder) and batches.takes(batches.embedding, tokens)

    return sent_as_batches(found, settings.embedder_of, takes, batches.price_share)


def _survey(
    states: Sequence[PublishedState], current: CurrentRows, paths: frozenset[str] | None
) -> tuple[Ratios, Mapping[str, set[int]]]:
    """Give every source its rows; return ratios by kind of file, and sizes of published documents by namespace."""
    ratios = Ratios()
    sizes: dict[str, set[int]] = defaultdict(set)
    by_source: dict[tuple[str, str], list[PublishedState]] = defaultdict(list)
    for state in states:
        by_source[state.key].append(state)
    hashing = {state.scope.namespace for state in states if isinstance(state.source, Hashing)}
    if paths is not None:
        amounts = current.amounts({extension_of(path) for path in paths}, hashing)
        for extension, sums in amounts.by_extension.items():
            ratios.learn_sums(extension, *sums)
        sizes = amounts.sizes

    def takers(row: DocumentOutline | DocumentRow) -> list[PublishedState]:
        return [state for state in by_source.get((row.namespace, row.source), ()) if not state.is_settled(row)]

    def wanted() -> Iterator[str]:
        for row in current.outlines(paths):
            if paths is None:
                ratios.learn(row)
                if row.status == "indexed" and row.namespace in hashing:
                    sizes[row.namespace].add(row.size)
            settled = [state.takes(row) for state in by_source.get((row.namespace, row.source), ())]
            if not all(settled):
                yield row.document_id

    _give(current, wanted(), takers)
    return ratios, sizes


def nothing_found(scope: Scope) -> str:
    """Return what to check when a source lists nothing: only a person can tell an empty place from a typo."""
    settings = scope.settings
    place = place_in(settings.uri, scope.prefix)
    named = "" if settings.name == settings.uri else f"source {settings.name}: "
    globs = ", its include and exclude globs" if settings.include or settings.exclude else ""
    last = "whether all it holds is hidden" if is_local(settings.uri) else "what the credentials may see"
    return f"{named}no document was found in {place}; check its spelling{globs} and {last}"


def check_refresh_budget(plan: RefreshPlan, budget_usd: float | None) -> None:
    """Stop before a refresh that will probably exceed its budget.

    Raises:
        RefusedError: gives the estimate and the budget.
    """
    found = plan.estimate
    check_budget("this refresh", found.expected_usd, found.likely.tokens, budget_usd, BUDGET_KEY)


def failures_of(plan: RefreshPlan, published: Collection[DocumentRow]) -> tuple[Failure, ...]:
    """Return documents that failed in this run, then earlier failures that were not retried."""
    earlier = {
        (change.namespace, change.document_id): change.known
        for source in plan.sources
        if tally_of(source.changes).not_indexed
        for change in source.changes
        if change.action != "removed" and change.known is not None and change.known.status != "indexed"
    }
    now = []
    for row in published:
        earlier.pop((row.namespace, row.document_id), None)
        if not row.removed and row.status != "indexed":
            now.append(failure_of(row))
    before = [failure_of(row, known=True) for row in earlier.values()]
    return tuple(sorted((*now, *before), key=lambda failure: (failure.status, failure.uri)))
