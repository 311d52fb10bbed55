"""Keep sources fresh: refresh all, then those that change, and look at remote ones from time to time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from parquetry.errors import ParquetryError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.sessions import SessionsRequest, run_sessions
from parquetry.planning.report import RunReport
from parquetry.plural import counted
from parquetry.serving.jobs.watching import Watched, changes, target_of
from parquetry.sessions.report import SessionsReport
from parquetry.settings.sections import Settings
from parquetry.sources.registry import Scope
from parquetry.tasks.engine.base import Cancelled, Engine

AGAIN_SECONDS = 30.0
"""seconds before a failed refresh is retried"""
REMOTE_SECONDS = 300.0
"""seconds between two looks at remote sources"""
_NEWS = ("added", "changed", "moved", "permissions", "removed")


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A line about a refresh."""

    text: str
    is_problem: bool = False
    is_detail: bool = False
    """True if it belongs to the line before"""


Tell = Callable[[ProgressLine], None]


@dataclass(frozen=True, slots=True)
class Freshness:
    """Refreshes of some sources."""

    settings: Settings
    watched: Sequence[Watched]
    """local sources"""
    remote: Sequence[Scope]
    """sources elsewhere"""
    refresh: Callable[[Sequence[Scope]], str]
    """refreshes sources; returns what went wrong, or an empty string"""
    tell: Tell
    stopping: threading.Event = field(default_factory=threading.Event)
    """ends the refreshes once it is set"""

    def keep(self) -> None:
        """Refresh all sources, then those that change, until told to stop."""
        due: list[Scope] = [*(each.scope for each in self.watched), *self.remote]
        remote_at, again_at, told = time.monotonic() + REMOTE_SECONDS, 0.0, ""
        for changed in changes(sorted({each.root for each in self.watched}), self.stopping):
            due = _with(due, (each.scope for each in self.watched if any(map(each.concerns, changed))))
            if time.monotonic() >= remote_at:
                due, remote_at = _with(due, self.remote), time.monotonic() + REMOTE_SECONDS
            if not due or (not changed and time.monotonic() < again_at):
                continue
            problem = self.refresh(due)
            if problem and problem != told:
                self.tell(ProgressLine(f"failed, and is tried again from time to time: {problem}", is_problem=True))
            due, again_at, told = due if problem else [], time.monotonic() + AGAIN_SECONDS, problem


def refresh_scopes(
    settings: Settings,
    scopes: Sequence[Scope],
    make_engine: Callable[[], Engine],
    make_observer: Callable[[], Observer],
    tell: Tell,
) -> str:
    """Refresh sources of documents, then those of sessions; tell the results.

    A source that cannot be refreshed does not keep the others from it.

    Args:
        settings: settings of the corpus.
        scopes: the sources.
        make_engine: makes the engine of a run.
        make_observer: makes the observer of a run.
        tell: receives each line.

    Returns:
        What went wrong; empty if all were refreshed.

    Raises:
        Cancelled: the run was stopped.
    """
    documents = [scope for scope in scopes if scope.settings.content == "documents"]
    problems = _documents(settings, documents, make_engine, make_observer, tell) if documents else []
    for scope in scopes:
        if scope.settings.content == "sessions":
            problems += _sessions(settings, scope, make_engine, make_observer, tell)
    return "; ".join(dict.fromkeys(problems))


def _documents(
    settings: Settings,
    scopes: Sequence[Scope],
    make_engine: Callable[[], Engine],
    make_observer: Callable[[], Observer],
    tell: Tell,
) -> list[str]:
    try:
        with make_observer() as observer:
            report = run_refresh(Request(settings, scopes=tuple(scopes)), make_engine(), observer)
    except Cancelled:
        raise
    except (ParquetryError, OSError) as error:
        if len(scopes) == 1:
            return [str(error)]
        return [
            problem for scope in scopes for problem in _documents(settings, [scope], make_engine, make_observer, tell)
        ]
    for line in lines_of(report):
        tell(line)
    return [*report.outages, *report.batch_problems, *_unindexed(report)]


def _sessions(
    settings: Settings,
    scope: Scope,
    make_engine: Callable[[], Engine],
    make_observer: Callable[[], Observer],
    tell: Tell,
) -> list[str]:
    try:
        with make_observer() as observer:
            request = SessionsRequest(settings, (target_of(scope),), scope.namespace)
            report = run_sessions(request, make_engine(), observer)
    except Cancelled:
        raise
    except (ParquetryError, OSError) as error:
        return [str(error)]
    for line in lines_of_sessions(report):
        tell(line)
    return [*report.outages, *report.batch_problems, *_unindexed(report)]


def lines_of(report: RunReport) -> list[ProgressLine]:
    """Return the line about a refresh: none if nothing changed."""
    counts = report.documents.as_dict()
    news = [f"{counts[name]} {name}" for name in _NEWS if counts[name]]
    bad = [failure for failure in report.failures if not failure.known]
    lines = []
    if news or bad:
        told = ", ".join([*news, *([f"{len(bad)} not indexed"] if bad else [])])
        lines.append(ProgressLine(f"{told} in {report.seconds:.1f} s, version {report.version}"))
    for failure in bad:
        told = f"  {failure.status} {failure.uri}: {failure.reason}: {failure.detail}"
        lines.append(ProgressLine(told, is_problem=True, is_detail=True))
    lines += [ProgressLine(f"kept: {kept}", is_problem=True) for kept in report.kept]
    lines += [ProgressLine(f"refused: {refusal}", is_problem=True) for refusal in report.refused]
    return lines


def lines_of_sessions(report: SessionsReport) -> list[ProgressLine]:
    """Return the line about a run over sessions: none if nothing was read."""
    counts, entries = report.sessions, report.entries
    read = counts["new"] + counts["grown"] + counts["retried"]
    lines = []
    if read:
        learned = ", ".join(f"{number} {kind}" for kind, number in entries.items() if number) or "nothing learned"
        told = f"{counted(read, 'session')} read, {learned} in {report.seconds:.1f} s, version {report.version}"
        lines.append(ProgressLine(told))
    for failure in report.failures:
        if not failure.known:
            told = f"  {failure.status} {failure.uri}: {failure.reason}: {failure.detail}"
            lines.append(ProgressLine(told, is_problem=True, is_detail=True))
    return lines


def _unindexed(report: RunReport | SessionsReport) -> list[str]:
    return [] if report.index_error is None else [f"the search index is not written: {report.index_error}"]


def _with(due: Sequence[Scope], more: Iterable[Scope]) -> list[Scope]:
    return [*due, *(scope for scope in more if scope not in due)]
