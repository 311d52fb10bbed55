"""One batch of sessions: each is read in windows and distilled. Contains the failure of every single session."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

from parquetry.errors import Verdict, classify
from parquetry.planning.outage import Lost, lost_to
from parquetry.planning.slowest import SlowItem
from parquetry.sessions.distill.learn import distill
from parquetry.sessions.distill.recall_filter import recalled_texts
from parquetry.sessions.distill.stated import StatedReply
from parquetry.sessions.model import Draft, Refusal, Spent
from parquetry.sessions.windows import Stretch, stretch_of, windows_to_read
from parquetry.tasks.engine.base import BatchHandler, verdict_of_failed_batch
from parquetry.tasks.sessions.reading import FoundSession
from parquetry.tasks.sessions.run import SessionRun
from parquetry.telemetry.tracing import batch_attributes, span

log = logging.getLogger("parquetry")


@dataclass(frozen=True, slots=True)
class SessionBatch:
    """Sessions that one task distills."""

    number: int
    """0-based within the run"""
    sessions: tuple[FoundSession, ...]
    host: str = ""
    """empty: sessions wait on this machine, whatever service their files came from"""


@dataclass(frozen=True, slots=True)
class LearnedSession:
    """The results of one session, not yet compared with known entries."""

    found: FoundSession
    drafts: tuple[Draft, ...]
    """drafts in the order in which they were learned"""
    refusals: tuple[Refusal, ...]
    spent: Spent
    failed: Verdict | None
    """reason of the failure; there are no drafts then"""
    quarantined: tuple[Stretch, ...] = ()
    """messages of which nothing was learned because the replies were invalid"""
    lost: Lost | None = None
    """failure of the language model, if it could not be asked"""


@dataclass(frozen=True, slots=True)
class SessionBatchReport:
    """The result of a batch; nothing is visible yet."""

    batch: int
    learned: tuple[LearnedSession, ...]


def into_session_batches(
    sessions: Sequence[FoundSession], batch_sessions: int, workers: int
) -> tuple[SessionBatch, ...]:
    """Divide sessions into tasks of at most `batch_sessions`, such that every worker has something to do."""
    size = max(1, min(batch_sessions, -(-len(sessions) // workers)))
    parts = [tuple(sessions[first : first + size]) for first in range(0, len(sessions), size)]
    return tuple(SessionBatch(number, part) for number, part in enumerate(parts))


def session_batches(run: SessionRun) -> BatchHandler[SessionBatch, SessionBatchReport]:
    """Return the batch handler of a run."""
    return BatchHandler(
        lambda batch: process_sessions(batch, run),
        lambda batch, error: failed_sessions(batch, error),
        run.settings.sessions.workers,
        run,
    )


def process_sessions(batch: SessionBatch, run: SessionRun) -> SessionBatchReport:
    """Distill the sessions of a batch.

    Args:
        batch: sessions in the spool.
        run: the run in progress.

    Returns:
        Every session of the batch, successful or not.

    Raises:
        ParquetryError: an error that concerns the whole run.
    """
    with span("parquetry.batch", batch_attributes(batch.number, len(batch.sessions)), run.trace):
        return SessionBatchReport(batch.number, tuple(_contained(found, run) for found in batch.sessions))


def failed_sessions(batch: SessionBatch, error: Exception) -> SessionBatchReport:
    """Return the report of a batch that failed as a whole: the next run retries all its sessions.

    Raises:
        ParquetryError: `error` itself, if it concerns the whole run.
    """
    verdict, lost = verdict_of_failed_batch(batch.number, error), lost_to("model", error)
    return SessionBatchReport(batch.number, tuple(_failed(found, verdict, lost) for found in batch.sessions))


def _contained(found: FoundSession, run: SessionRun) -> LearnedSession:
    run.check_cancelled()
    if not run.patient:
        detail = "not tried: the language model could not be asked for many sessions in a row"
        return _failed(found, Verdict("retry", "unreachable", detail), Lost("model", "unreachable", detail))
    started = perf_counter()
    try:
        learned = _learn(found, run)
    except Exception as error:
        verdict = classify(error)
        if verdict.fate == "stop":
            raise
        if verdict.fate == "retry":
            run.lost()
        log.info("%s failed: %s: %s", found.ref.uri, verdict.reason, verdict.detail)
        return _failed(found, verdict, lost_to("model", error))
    finally:
        file, ref = found.file, found.ref
        seconds = perf_counter() - started
        run.slowest.add(SlowItem(file.namespace, file.source, ref.session_id, ref.uri, "distill", seconds))
    run.answered()
    return learned


def _learn(found: FoundSession, run: SessionRun) -> LearnedSession:
    if found.kept is None:
        raise ValueError(f"{found.ref.uri} was not put aside")
    settings = run.settings.sessions
    transcript = run.spool.read(found.kept)
    recalled = recalled_texts(transcript.messages)
    drafts: list[Draft] = []
    refusals: list[Refusal] = []
    spent: list[Spent] = []
    quarantined: list[Stretch] = []
    to_read = list(windows_to_read(transcript, found.first_new, found.retried, settings))
    for number, window in enumerate(to_read, start=1):
        run.check_cancelled()
        llm = StatedReply(window) if run.stated else run.llm
        with run.asking.about(f"{found.ref.uri}, window {number} of {len(to_read)}"):
            got = distill(window, found.ref, found.at, recalled, llm, run.prompts.distill, settings)
        drafts.extend(got.drafts)
        refusals.extend(got.refusals)
        spent.append(got.spent)
        if any(refusal.quarantined for refusal in got.refusals):
            quarantined.append(stretch_of(transcript, window))
    asked = (None, None) if run.stated else (run.llm.model, run.prompts.distill.version)
    cost = total(spent, *asked)
    return LearnedSession(found, tuple(drafts), tuple(refusals), cost, None, tuple(quarantined))


def _failed(found: FoundSession, verdict: Verdict, lost: Lost | None) -> LearnedSession:
    return LearnedSession(found, (), (), Spent(None, None), verdict, lost=lost)


def total(spent: Iterable[Spent], model: str | None, prompt: str | None) -> Spent:
    """Add up the cost of several calls."""
    parts = list(spent)
    return Spent(
        model,
        prompt,
        sum(part.input_tokens for part in parts),
        sum(part.output_tokens for part in parts),
        sum((part.cost_usd for part in parts), 0.0),
    )
