"""The overview: the size of a corpus, its sources, what failed, and what it cost, as one caller may see it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from parquetry.reasons import REASONS
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.search.run_rows import outcome_of
from parquetry.serving.search.service import Reader
from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.search.document_browsing import SourceSummary, failures_by_reason, summarise
from parquetry.storage.search.document_list import count_documents
from parquetry.storage.search.filters import Filters


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Documents that could not be read for one reason."""

    reason: str
    """code"""
    stage: str
    explanation: str
    """one line; empty for an unknown code"""
    documents: int


@dataclass(frozen=True, slots=True)
class Spending:
    """The runs of the whole corpus."""

    runs: int
    tokens: int
    usd: float
    last_at: datetime
    last_outcome: str
    last_seconds: float | None


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """A corpus at a glance."""

    version: int
    published_at: datetime | None
    """UTC; None if the history does not tell"""
    sources: tuple[SourceSummary, ...]
    failures: tuple[FailureGroup, ...]
    entries: int
    spending: Spending | None
    """None for callers who may not see runs"""

    @property
    def documents(self) -> int:
        """Number of documents, failed ones included."""
        return sum(each.documents for each in self.sources)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return sum(each.chunks for each in self.sources)

    @property
    def failed(self) -> int:
        """Number of documents that could not be read."""
        return sum(each.failed for each in self.sources)

    @property
    def skipped(self) -> int:
        """Number of documents with nothing to index."""
        return sum(each.skipped for each in self.sources)

    @property
    def namespaces(self) -> int:
        """Number of namespaces with documents."""
        return len({each.namespace for each in self.sources})


def overview_page(reader: Reader, caller: Principal) -> OverviewPage:
    """Return the overview of a version.

    Args:
        reader: reader of the version.
        caller: whom it is shown to.

    Raises:
        StorageError: the corpus cannot be read.
    """
    filters = filters_for(caller, None, Filters())
    entries = filters_for(caller, None, Filters(what="entries"))
    with closing(reader.index.session()) as session:
        sources = summarise(session, filters)
        failures = [_group(reason, number) for reason, number in failures_by_reason(session, filters)]
        learned = count_documents(session, entries).documents
        # Runs name documents of everybody, and cost is of the whole corpus.
        spending = _spending(session) if caller.sees_everything and caller.may("admin") else None
    newest = reader.history(1)
    return OverviewPage(
        reader.snapshot.version,
        newest[0].at if newest else None,
        tuple(sources),
        tuple(failures),
        learned,
        spending,
    )


def _group(told: str, number: int) -> FailureGroup:
    stage, _, reason = told.rpartition("/")
    return FailureGroup(reason, stage, REASONS.get(reason, ""), number)


def _spending(session: Connection) -> Spending | None:
    totals = "SELECT count(*), coalesce(sum(tokens), 0)::BIGINT, coalesce(sum(cost_usd), 0)::DOUBLE FROM runs"
    ((runs, tokens, usd),) = tuples(session, totals)
    if not runs:
        return None
    last: Mapping[str, Any] = rows(session, "SELECT * FROM runs ORDER BY started_at DESC, run_id DESC LIMIT 1")[0]
    return Spending(runs, tokens, usd, last["started_at"], outcome_of(last), last["seconds"])
