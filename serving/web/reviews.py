"""Reviews of merges: those that a caller sees, may answer, and the job that goes on after the last answer."""

from __future__ import annotations

from dataclasses import dataclass

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused, NotVisible
from parquetry.serving.access.visibility import demand_change, is_visible
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.reviews import Answer, Review
from parquetry.serving.service.resources import Resources


@dataclass(frozen=True, slots=True)
class ShownReview:
    """A merge that waits for an answer."""

    review: Review
    audience: str
    """audience of the entry, in words"""
    may_answer: bool


def visible_reviews(resources: Resources, caller: Principal) -> list[ShownReview]:
    """Return the merges that wait for an answer and that a caller may see, the oldest first."""
    return [
        ShownReview(each, _audience(each), _may(caller, each))
        for each in resources.reviews.waiting()
        if is_visible(caller, each.namespace, each.access)
    ]


def _audience(review: Review) -> str:
    access = review.access
    if access.visibility == "organization":
        return f"Everyone in {access.org_id}"
    return f"{access.user_id} alone" if access.visibility == "individual" else "Everyone"


def _may(caller: Principal, review: Review) -> bool:
    try:
        demand_change(caller, review.namespace, review.access)
    except AccessRefused:
        return False
    return True


def answer_review(resources: Resources, caller: Principal, job_id: str, key: str, answer: Answer) -> Job | None:
    """Record an answer; after the last one of a run, queue the job that goes on with it.

    Args:
        resources: parts of the service.
        caller: maker of the request.
        job_id: job that asked.
        key: key of the merge.
        answer: the answer.

    Returns:
        The job that goes on; None while other merges wait.

    Raises:
        NotVisible: there is no such review, or not for the caller; or it has an answer already.
        Forbidden: the caller may not answer it.
        TransientError: too many jobs wait; nothing is recorded.
    """
    found = resources.reviews.get(job_id, key)
    if found is None or not is_visible(caller, found.namespace, found.access):
        raise NotVisible("not-found", "there is no such merge to review")
    demand_change(caller, found.namespace, found.access)
    first = resources.jobs.get(job_id)
    if first is None:
        resources.reviews.withdraw([job_id])
        raise NotVisible("not-found", "the run that asked is too long ago; learn from the sessions again")
    # An answer that is recorded is not asked for again: the run has to go on.
    resources.jobs.check_room(first.owner)
    if not resources.reviews.answer(job_id, key, answer):
        raise NotVisible("not-found", "somebody has answered this already")
    if resources.reviews.waiting(job_id):
        return None
    payload = {**first.payload, "review": True, "review_of": job_id}
    return resources.jobs.submit("sessions", first.namespace, payload, first.owner)
