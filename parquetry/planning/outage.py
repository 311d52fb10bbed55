"""Outages: a run fails if a service failed every request of a source."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from parquetry.errors import ServiceRefused, classify
from parquetry.model import DocumentRow
from parquetry.planning.diff import SourcePlan
from parquetry.plural import counted

Service = Literal["embedding", "store", "model", "workers"]
"""embedding: computes vectors; store: holds the documents of a source; model: a language model; workers: process
batches for the run"""
SERVICES: Mapping[Service, str] = {
    "embedding": "the embedding service",
    "store": "its store",
    "model": "the language model",
    "workers": "the workers of the run",
}
REFUSED = "service-refused"
"""reason for a failure that lasts until the key, the quota or the model's name is corrected"""

_OF_THE_DOCUMENT = frozenset({"vanished", "changed-while-read"})
"""reasons for transient failures of a single document that do not indicate an outage"""

Key = tuple[str, str]
"""namespace and id of a document"""


@dataclass(frozen=True, slots=True)
class Lost:
    """Failure of a service."""

    service: Service
    reason: str
    """reason code in kebab-case"""
    detail: str
    """one sentence of text"""

    @property
    def lasting(self) -> bool:
        """True if retries cannot succeed until an operator acts."""
        return self.reason == REFUSED


@dataclass(frozen=True, slots=True)
class Need:
    """Single need of a source in this run. Documents that failed for reasons of their own are not counted."""

    namespace: str
    source: str
    lost: Lost | None
    """None if the service succeeded"""
    what: str = "document"


@dataclass(frozen=True, slots=True)
class Outage:
    """Source that a service failed."""

    source: str
    lost: Lost
    """most frequent failure"""
    failed: int
    needed: int
    what: str = "document"

    def __str__(self) -> str:
        share = f"{self.failed} of {counted(self.needed, self.what)}" if self.needed > 1 else f"its {self.what}"
        return (
            f"source {self.source}: {SERVICES[self.lost.service]} failed {share} "
            f"({self.lost.reason}: {self.lost.detail}); the next run tries again"
        )


def lost_to(service: Service, error: BaseException) -> Lost | None:
    """Return the service failure behind an error; None if the error concerns only the document, or the whole run.

    Args:
        service: service in use when the error was raised.
        error: the error.
    """
    verdict = classify(error)
    if isinstance(error, ServiceRefused):
        return Lost(service, REFUSED, verdict.detail)
    if verdict.fate != "retry" or verdict.reason in _OF_THE_DOCUMENT:
        return None
    return Lost(service, verdict.reason, verdict.detail)


def outages(needs: Iterable[Need]) -> tuple[Outage, ...]:
    """Return the sources with all needs lost to services, or with a permanent refusal by one.

    Args:
        needs: needs of all sources of a run.
    """
    by_source: dict[Key, list[Need]] = defaultdict(list)
    for need in needs:
        by_source[need.namespace, need.source].append(need)
    found = []
    for (_, source), all_of_it in by_source.items():
        lost = [(need.lost, need.what) for need in all_of_it if need.lost is not None]
        if len(lost) < len(all_of_it) and not any(each.lasting for each, _ in lost):
            continue
        lasting = [each for each in lost if each[0].lasting] or lost
        (most, what), _ = Counter(lasting).most_common(1)[0]
        same = sum(need.what == what for need in all_of_it)
        found.append(Outage(source, most, sum(kind == what for _, kind in lost), same, what))
    return tuple(found)


def needs_of(plans: Sequence[SourcePlan], rows: Iterable[DocumentRow], lost: Mapping[Key, Lost]) -> tuple[Need, ...]:
    """Return the needs of all sources of a refresh, with their outcomes.

    A document that its store refuses in run after run while others of the source are indexed is left out: the failure
    concerns only that document.

    Args:
        plans: plans of the sources.
        rows: rows that the batches produced.
        lost: failures of services, by document.
    """
    needs = [
        Need(plan.namespace, plan.source, Lost("store", plan.broken.reason, plan.broken.detail), "listing")
        for plan in plans
        if plan.broken is not None
    ]
    own = _refused_again(plans, lost)
    met: dict[Key, Need] = {}
    """needs without a failure, which are all the same for a source"""
    for row in rows:
        key = (row.namespace, row.document_id)
        if row.removed or key in own:
            continue
        if key in lost:
            needs.append(Need(row.namespace, row.source, lost[key]))
        elif row.status == "indexed":
            source = (row.namespace, row.source)
            needs.append(met.setdefault(source, Need(*source, None)))
    return tuple(needs)


def _refused_again(plans: Sequence[SourcePlan], lost: Mapping[Key, Lost]) -> set[Key]:
    found: set[Key] = set()
    stored = {key for key, each in lost.items() if each.service == "store"}
    for plan in plans if stored else ():
        others = plan.unchanged or any(
            change.effort == "nothing" and change.known is not None and change.known.status == "indexed"
            for change in plan.changes
        )
        for change in plan.changes if others else ():
            key = (change.namespace, change.document_id)
            if key in stored and change.known is not None and change.known.status == "failed":
                before = (change.known.error or "").partition(": ")[0]
                if before == f"fetch/{lost[key].reason}":
                    found.add(key)
    return found
