"""List the sources concurrently; each is retried by itself, and none can delay or break the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait

from parquetry.errors import classify
from parquetry.masking import masked
from parquetry.model import BrokenOff, Failure, Item, Listing, Unlisted
from parquetry.planning.diff import SourcePlan
from parquetry.planning.unchanged import ScanPass, UnchangedIndex
from parquetry.sources.base import Pointed, Source
from parquetry.sources.nesting import Inner, Owners, left_out, place_in
from parquetry.sources.registry import Scope
from parquetry.tasks.documents.listed_items import ListedItems
from parquetry.tasks.engine.base import Cancelled
from parquetry.tasks.engine.retries import Retries
from parquetry.threads import threads_of

AT_A_TIME = 16
"""sources listed concurrently: they spend most of the time waiting for services"""


def list_scopes(
    scopes: Sequence[tuple[Scope, Source]], retries: Retries, passes: Sequence[ScanPass] | None = None
) -> list[Listing]:
    """List every source within the scope of a refresh.

    Args:
        scopes: scopes to refresh, with the sources to list.
        retries: retries of the run.
        passes: for each source, the scan pass that recognises unchanged documents; None to list everything.

    Returns:
        One listing for each source, in their order; an interrupted one holds what was seen and is marked as incomplete.

    Raises:
        SettingsError: the place of a source does not exist.
    """
    stop = threading.Event()
    passes = passes or [ScanPass(UnchangedIndex()) for _ in scopes]
    if len(scopes) == 1:
        return [_list(*scopes[0], passes[0], retries, stop)]
    with threads_of(min(len(scopes), AT_A_TIME), "list") as threads:
        listings = [
            threads.submit(_list, scope, source, scan_pass, retries, stop)
            for (scope, source), scan_pass in zip(scopes, passes, strict=True)
        ]
        try:
            done, _ = wait(listings, return_when=FIRST_EXCEPTION)
            for listing in done:
                listing.result()
            return [listing.result() for listing in listings]
        finally:
            # Has no effect if all are done.
            stop.set()


def _list(scope: Scope, source: Source, scan_pass: ScanPass, retries: Retries, stop: threading.Event) -> Listing:
    seen = ListedItems()
    others: Counter[Inner] = Counter()
    """number of documents by the inner source that they belong to, as counted by the last attempt"""
    broken = None
    try:
        items, unlisted = retries.call(scope.name, lambda: _one_try(scope, source, scan_pass, seen, others, stop))
    except Exception as error:
        verdict = classify(error)
        if verdict.fate == "stop":
            raise
        scan_pass.give_up()
        items, unlisted, broken = seen.all(), (), BrokenOff(verdict.reason, verdict.detail)
    return Listing(
        scope.name,
        scope.namespace,
        scope.prefix,
        items,
        unlisted,
        broken,
        scan_pass.count,
        left_out(others),
        scope.paths,
        scope.removes,
    )


def _one_try(
    scope: Scope,
    source: Source,
    scan_pass: ScanPass,
    seen: ListedItems,
    others: Counter[Inner],
    stop: threading.Event,
) -> tuple[Sequence[Item], tuple[Unlisted, ...]]:
    unlisted: list[Unlisted] = []
    owners = Owners(scope.inner)
    others.clear()
    scan_pass.begin()
    seen.begin()
    for found in _found(scope, source):
        if stop.is_set():
            raise Cancelled("the listing of another source stopped the run; nothing was published")
        document = isinstance(found, Item)
        owner = owners.of(found.path, document=document)
        if owner is not None:
            others[owner] += document
        elif not isinstance(found, Item):
            unlisted.append(Unlisted(masked(found.path), masked(found.detail)))
        elif not scan_pass.meets(found):
            seen.add(found)
        elif scan_pass.changed_back:
            seen.drop(found.path)
    return seen.latest(), tuple(unlisted)


def _found(scope: Scope, source: Source) -> Iterator[Item | Unlisted]:
    """Yield what a source holds within a scope; single documents without a listing where the source can do that."""
    if not scope.paths:
        yield from source.scan(scope.prefix)
    elif isinstance(source, Pointed):
        yield from (found for path in sorted(scope.paths) if (found := source.look(path)) is not None)
    else:
        yield from (found for found in source.scan("") if not isinstance(found, Item) or found.path in scope.paths)


def listing_failures(listings: Iterable[tuple[Scope, Listing | SourcePlan]], run_id: str) -> Iterator[Failure]:
    """Yield failures for listings that broke off, and for places that could not be listed."""
    for scope, listing in listings:
        uri = scope.settings.uri
        unseen = [(place_in(uri, place.path), "unlisted", place.detail) for place in listing.unlisted]
        if listing.broken is not None:
            unseen.append((uri, listing.broken.reason, listing.broken.detail))
        for place, reason, detail in unseen:
            yield Failure("", scope.namespace, scope.name, place, "failed", "scan", reason, detail, 1, run_id)
