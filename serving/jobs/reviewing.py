"""Learning from sessions with a review: a run that would merge ends, and goes on when a person has answered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.sessions import SessionsRequest, run_sessions
from parquetry.serving.jobs.context import JobContext
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.reviews import ReviewStore
from parquetry.serving.jobs.write_outcomes import JobOutcome
from parquetry.tasks.sessions.publish import ReviewAwaited

if TYPE_CHECKING:
    from parquetry.sessions.merge.effects import MergeProposal
    from parquetry.sessions.report import SessionsReport


def reviewed_sessions(
    context: JobContext, job: Job, request: SessionsRequest, engine: StoppableEngine, observer: Observer
) -> SessionsReport | JobOutcome:
    """Learn from sessions; return the report, or the outcome of a job whose merges wait for a person.

    Nothing is published before every merge has an answer. The run after the last answer begins anew, and calls no model
    for what was asked before, because answers of models are kept.

    Args:
        context: what jobs share.
        job: the job; `review_of` in its payload is the job whose merges were answered.
        request: the sessions.
        engine: runs the steps.
        observer: receives progress.

    Raises:
        ParquetryError: nothing was published.
    """
    asking = str(job.payload.get("review_of") or job.id)
    with closing(ReviewStore(context.state)) as store:
        known = dict(store.answers(asking))

        def review(proposals: Sequence[MergeProposal]) -> Collection[str]:
            fresh = [each for each in proposals if each.key not in known]
            if fresh:
                store.ask(asking, fresh)
                raise ReviewAwaited(asking)
            return [each.key for each in proposals if known[each.key] == "rejected"]

        try:
            return run_sessions(request, engine, observer, review)
        except ReviewAwaited:
            return JobOutcome({"waits_for": len(store.waiting(asking)), "review": asking})
