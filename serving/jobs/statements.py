"""Statements to remember: each is a session of its own, compared with known entries and published like those."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parquetry.errors import IndexNotWritten
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.sessions import AdHoc, SessionsRequest, run_sessions
from parquetry.serving.jobs.context import Failed, failure_of
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.search.entry_reading import decisions, texts_of
from parquetry.sessions.model import DecisionKind
from parquetry.settings.sections import Settings
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_readable


@dataclass(frozen=True, slots=True)
class StatementDecision:
    """The decision about a statement."""

    status: DecisionKind
    """`new`, `existing`, `merged` or `contradicts`; `refused` if it failed a check"""
    entry_id: str | None
    """entry that says it from now on; None if it was refused"""
    text: str | None
    """text of that entry"""
    contradicts: tuple[str, ...]
    """texts of the entries that say the opposite"""
    reason: str | None
    """short code of the check or guard that decided"""
    detail: str
    """explanation in words"""

    def as_json(self) -> dict[str, Any]:
        """Return the decision as it stands in the result of a job."""
        return {**asdict(self), "contradicts": list(self.contradicts)}


def learn_statement(
    settings: Settings, file: Path, namespace: str, owner: AdHoc, engine: StoppableEngine, observer: Observer
) -> tuple[int, StatementDecision]:
    """Compare a statement with the known entries, and publish what follows.

    Args:
        settings: settings of the corpus; its language model compares.
        file: the statement, as `parquetry.serving.service.session_inbox.keep_statement` keeps it.
        namespace: namespace of the entry.
        owner: owner of the entry, and its visibility.
        engine: runs the steps.
        observer: receives progress.

    Returns:
        The version with the decision, and the decision; the same file again changes nothing and has the same decision.

    Raises:
        Failed: there is no decision, because a service or the file failed.
        ParquetryError: nothing was published.
    """
    request = SessionsRequest(settings, (str(file.parent),), namespace, owner, statement=file.name)
    report = run_sessions(request, engine, observer)
    # A search builds an index that the run could not write.
    if report.error is not None and not isinstance(report.error, IndexNotWritten):
        raise failure_of(report.error)
    decision = _decision(settings, file)
    if decision is None:
        failure = next((each for each in report.failures if file.name in each.uri), None)
        if failure is None:
            raise Failed("internal", "the statement was read, and nothing was decided about it; hand it in again")
        raise Failed(failure.reason, f"the statement could not be compared: {failure.detail}")
    return report.version, decision


def _decision(settings: Settings, file: Path) -> StatementDecision | None:
    with closing(connect_readable(Lake(settings.corpus.root).snapshot())) as connection:
        # The name is that of no other file.
        found = next(iter(decisions(connection, session=file.name, limit=1)), None)
        if found is None:
            return None
        texts = texts_of(connection, [found])
    opposite = found["links"] if found["kind"] == "contradicts" else ()
    return StatementDecision(
        found["kind"],
        found["entry_id"],
        texts.get(found["entry_id"]),
        tuple(texts[each] for each in opposite if each in texts),
        found["reason"],
        found["reasoning"],
    )
