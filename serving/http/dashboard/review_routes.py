"""The page of merges that wait for a person, and the answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import Parts, ReadCaller, WriteCaller
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import ENTRIES
from parquetry.serving.http.problems import Problem
from parquetry.serving.jobs.reviews import Answer
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.web.reviews import answer_review, visible_reviews

router = APIRouter(include_in_schema=False)
REVIEWS = f"{ENTRIES}/reviews"
_ANSWERS: dict[str, Answer] = {"approved": "approved", "rejected": "rejected"}
_NOTICES = {
    "more": "Your answer is kept. Nothing is published before the other merges of this run have one, too.",
    "last": "All merges of this run have an answer. It goes on now, and publishes what was learned.",
}


@router.get(REVIEWS)
def list_reviews(
    request: Request, caller: ReadCaller, parts: Parts, notice: Annotated[str, Query(max_length=16)] = ""
) -> Response:
    """Show the merges that wait for an answer."""
    may_write = not parts.settings.serve.read_only
    return page(
        request,
        "reviews.html",
        reviews=visible_reviews(parts, caller),
        notice=_NOTICES.get(notice, ""),
        may_write=may_write,
    )


@router.post(f"{REVIEWS}/{{job_id}}/{{key}}")
async def answer(
    request: Request,
    job_id: Annotated[str, Path(max_length=64)],
    key: Annotated[str, Path(max_length=64)],
    caller: WriteCaller,
    parts: Parts,
    fields: CheckedForm,
) -> Response:
    """Approve or reject a merge."""
    chosen = _ANSWERS.get(text(fields, "answer"))
    if chosen is None:
        raise Problem(422, "invalid-request", "approve or reject the merge")
    record = Recorded(request, caller, "entries.decided", None)
    job = await in_thread(answer_review, parts, caller, job_id, key, chosen)
    record.write(status=303, target=f"{chosen} {key} of {job_id}")
    return redirect(f"{REVIEWS}?notice={'more' if job is None else 'last'}")
