"""Carry out jobs: small writes together in one lane, runs over whole sources one by one in another."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from parquetry.errors import RefusedError, SettingsError, StorageError
from parquetry.plural import counted
from parquetry.serving.jobs.aside import carry_out_aside
from parquetry.serving.jobs.context import JobContext, PutBack, failure_of
from parquetry.serving.jobs.engine import Progress, StoppableEngine
from parquetry.serving.jobs.model import ASIDE, RUNS, WRITES, Job, Kind
from parquetry.serving.jobs.runs import carry_out_run
from parquetry.serving.jobs.taking_back import end_of, take_back
from parquetry.serving.jobs.undoing import undo_removal
from parquetry.serving.jobs.withdrawing import can_be_withdrawn
from parquetry.serving.jobs.write_outcomes import JobOutcome
from parquetry.serving.jobs.writes import publish_writes
from parquetry.tasks.engine.base import Cancelled

log = logging.getLogger("parquetry")
GATHER_SECONDS = 0.01
"""seconds for further small writes to arrive before some are carried out"""
LOOK_SECONDS = 0.02
"""seconds between two looks at the queue"""
RECORD_SECONDS = 5.0
"""seconds between two attempts to record the end of a job"""


class Lane(threading.Thread):
    """Thread that carries out the jobs of some kinds, as many at a time as can be carried out together.

    Args:
        context: what jobs share.
        kinds: kinds of jobs.
        by_prefect: hand runs to their Prefect deployments.
    """

    def __init__(self, context: JobContext, kinds: Collection[Kind], *, by_prefect: bool = False) -> None:
        super().__init__(name=f"jobs-{min(kinds)}", daemon=True)
        self._context = context
        self._kinds = frozenset(kinds)
        self._by_prefect = by_prefect
        self._stopping = (context.writes if self._kinds & WRITES else context.runs).stopping

    def run(self) -> None:
        store = self._context.store
        while not self._stopping.is_set():
            try:
                if not store.waits(self._kinds):
                    self._stopping.wait(LOOK_SECONDS)
                    continue
                if self._kinds & WRITES:
                    self._stopping.wait(GATHER_SECONDS)
                carry_out(self._context, store.claim(self._kinds), by_prefect=self._by_prefect)
            except Exception:
                # The edge of a job: whatever it runs into, the next one is carried out. A job whose end cannot be
                # recorded is done again by the next process.
                log.exception("a job could not be carried out, or its end not be recorded")
                self._stopping.wait(1)


def lanes_of(context: JobContext, *, by_prefect: bool) -> tuple[Lane, ...]:
    """Return the lanes of a process: a long run holds up no small write."""
    if not by_prefect:
        return (Lane(context, WRITES), Lane(context, ASIDE), Lane(context, RUNS))
    handed: frozenset[Kind] = frozenset({"refresh", "reindex"})
    lanes = (Lane(context, WRITES), Lane(context, ASIDE), Lane(context, RUNS - handed))
    return (*lanes, Lane(context, handed, by_prefect=True))


def carry_out(context: JobContext, jobs: Sequence[Job], *, by_prefect: bool = False) -> None:
    """Carry out jobs of one claim, and record the end of each.

    Args:
        context: what jobs share.
        jobs: jobs of this process, which can be carried out together.
        by_prefect: hand a run to its Prefect deployment.
    """
    if not jobs:
        return
    ends = _ends(context, jobs, by_prefect=by_prefect)
    _record(context, [job for job in jobs if job.id in ends], ends)
    if left := [job.id for job in jobs if job.id not in ends]:
        context.store.release(left)


def _ends(context: JobContext, jobs: Sequence[Job], *, by_prefect: bool = False) -> Mapping[str, JobOutcome]:
    """Carry out jobs; return the end of each, without those that the next process does because this one stops."""
    try:
        if jobs[0].kind in WRITES:
            return _written(context, jobs)
        if by_prefect:
            from parquetry.serving.jobs.handover import hand_over

            return {jobs[0].id: hand_over(context, jobs[0])}
        return {jobs[0].id: _run(context, jobs[0])}
    except PutBack:
        return {}
    except Cancelled as stopped:
        return _ends_of_stopped(context, jobs, stopped)
    except Exception as error:  # noqa: BLE001 - the edge of a job: any error is the end of these jobs
        return _all_failed(jobs, error)


def _written(context: JobContext, jobs: Sequence[Job]) -> Mapping[str, JobOutcome]:
    """Carry out small writes; one that is refused does not stop the others."""
    try:
        with context.writes.engine() as engine, _stopped_if_cancelled(context, jobs, engine):
            if jobs[0].kind == "reinstate":
                return {jobs[0].id: undo_removal(context, jobs[0], engine)}
            return publish_writes(context, jobs, engine)
    except (SettingsError, RefusedError):
        if len(jobs) == 1:
            raise
    return {id_: end for job in jobs for id_, end in _ends(context, [job]).items()}


def _ends_of_stopped(context: JobContext, jobs: Sequence[Job], stopped: Cancelled) -> Mapping[str, JobOutcome]:
    """Return the ends of those jobs of a stopped run that were cancelled."""
    work = context.writes if jobs[0].kind in WRITES else context.runs
    asked = [job for job in jobs if context.is_cancelled(job) or not work.stopping.is_set()]
    try:
        report = take_back(context, asked)
        if report is None:
            return dict.fromkeys((job.id for job in asked), JobOutcome({}, cancelled=str(stopped)))
        context.follow(report.version)
    except Cancelled:
        # This process ends before it could: the next one does it.
        return {}
    except Exception as error:  # noqa: BLE001 - the edge of a job: the others were not carried out
        return _all_failed(asked, error)
    return dict.fromkeys((job.id for job in asked), end_of(report))


def _all_failed(jobs: Sequence[Job], error: Exception) -> Mapping[str, JobOutcome]:
    failure = failure_of(error)
    if failure.reason == "internal":
        log.error("a job failed", exc_info=error)
    return dict.fromkeys((job.id for job in jobs), JobOutcome({}, failure))


@contextmanager
def _stopped_if_cancelled(context: JobContext, jobs: Sequence[Job], engine: StoppableEngine) -> Iterator[None]:
    """Stop the run of the block as soon as all of its jobs are cancelled."""
    stop_if_asked = threading.Thread(target=_watch, args=(context, jobs, engine), daemon=True)
    stop_if_asked.start()
    try:
        yield
    finally:
        engine.is_done.set()
        stop_if_asked.join()


def _run(context: JobContext, job: Job) -> JobOutcome:
    if job.kind in ASIDE:
        return carry_out_aside(context, job)
    with context.one_run, context.runs.engine() as engine, context.observer() as shown:

        def keep(progress: Mapping[str, Any]) -> None:
            if context.note(job, progress):
                engine.stop()

        observer = Progress(keep, shown)
        engine.on_step = observer.step
        with _stopped_if_cancelled(context, [job], engine):
            return carry_out_run(context, job, engine, observer)


def _watch(context: JobContext, jobs: Sequence[Job], engine: StoppableEngine) -> None:
    while not all(_can_be_stopped(job) and context.is_cancelled(job) for job in jobs):
        if engine.is_done.wait(0.25):
            return
    engine.stop()


def _can_be_stopped(job: Job) -> bool:
    """Return True for a run over whole sources, and for a small write of which nothing is left when it is cancelled."""
    return job.kind in RUNS or can_be_withdrawn(job)


def _record(context: JobContext, jobs: Sequence[Job], ends: Mapping[str, JobOutcome]) -> None:
    done: list[Job] = []
    failed: Counter[tuple[Kind, str]] = Counter()
    cancelled = 0
    for job in jobs:
        end = ends[job.id]
        _record_end(context, job, end)
        if end.cancelled is not None:
            cancelled += 1
        elif end.failure is None:
            done.append(job)
        else:
            failed[job.kind, f"{end.failure.reason}: {end.failure.detail}"] += 1
    for (kind, told), number in failed.items():
        context.tell(f"{kind if number == 1 else counted(number, f'{kind} job')} failed: {told}")
    if done:
        kinds = done[0].kind if len({job.kind for job in done}) == 1 else "write"
        version = ends[done[-1].id].result.get("version", "?")
        context.tell(f"{counted(len(done), f'{kinds} job')} done, version {version}")
    if cancelled:
        context.tell(f"{counted(cancelled, f'{jobs[0].kind} job')} cancelled")


def _record_end(context: JobContext, job: Job, end: JobOutcome) -> None:
    """Record the end of a job: what is published is not told as a failure because the queue cannot be written.

    Raises:
        StorageError: it could not be recorded until this process stops; the next one does the job again.
    """
    work = context.writes if job.kind in WRITES else context.runs
    while True:
        try:
            if end.cancelled is not None:
                context.store.cancelled(job.id, end.cancelled)
            elif end.failure is None:
                context.store.finish(job.id, end.result)
            else:
                context.store.fail(job.id, end.failure.reason, end.failure.detail, end.result or None)
        except StorageError as error:
            log.warning("the end of %s is recorded as soon as it can be: %s", job.id, error)
            if work.stopping.wait(RECORD_SECONDS):
                raise
        else:
            return


def stop_all(context: JobContext, lanes: Sequence[Lane], seconds: float) -> bool:
    """Begin no further job, and stop the runs in work; return True if they ended in time.

    Args:
        context: what jobs share.
        lanes: the lanes of this process.
        seconds: seconds for the runs to end.
    """
    deadline = time.monotonic() + seconds
    context.runs.stop()
    context.writes.stop()
    for lane in lanes:
        lane.join(max(0.0, deadline - time.monotonic()))
    return not any(lane.is_alive() for lane in lanes)
