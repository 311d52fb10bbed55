"""The page of documents that may need a person, and the analysis that finds them."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.recent_events import recent_events
from parquetry.serving.access.refusals import Forbidden
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.callers import AdminCaller, Parts, PublishedParts, ReadCaller
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import MAP, QUALITY
from parquetry.serving.jobs.model import Job
from parquetry.serving.search.service import Reader
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.version_cache import of_version
from parquetry.serving.service.writing import submit
from parquetry.serving.web.jobs import ShownJob, shown_job
from parquetry.serving.web.quality import LISTS, UNANSWERED, QualityGroup, groups_of, is_unanswered, unanswered
from parquetry.storage.analysis.folder import AnalysisFile, newest_analysis
from parquetry.storage.analysis.lists import ALIKE, FAULTS, alike, analyzed, faulty
from parquetry.storage.search.filters import Filters

router = APIRouter(include_in_schema=False)
PAGE = 50
"""documents of a page"""
MOST_QUESTIONS = 200
Name = Annotated[str, Query(max_length=64)]
Number = Annotated[int, Query(alias="page", ge=1, le=20_000_000)]


@router.get(QUALITY)
def show_quality(
    request: Request,
    caller: ReadCaller,
    parts: PublishedParts,
    which: Annotated[str, Query(alias="list")] = "",
    number: Number = 1,
) -> Response:
    """Show the lists, with their numbers, and one of them."""
    lists = (*LISTS, UNANSWERED) if caller.sees_everything and caller.may("admin") else LISTS
    chosen = next((each for each in lists if each.key == which), lists[0])
    with parts.follower.reader() as reader:
        file = newest_analysis(reader.snapshot.layout, parts.settings.search)
        counts, groups = _lists(reader, caller, file, chosen.key, number)
        version = reader.snapshot.version
    questions: list[Any] = []
    if chosen is UNANSWERED:
        questions = unanswered(recent_events(parts.state, is_unanswered, MOST_QUESTIONS)[0])
    return page(
        request,
        "quality.html",
        lists=lists,
        chosen=chosen,
        counts=counts,
        groups=groups,
        questions=questions,
        keeps_text=parts.settings.serve.audit_text,
        number=number,
        pages=max(1, -(-counts.get(chosen.key, 0) // PAGE)),
        **analysis_state(parts, caller, file, version),
    )


def _lists(
    reader: Reader, caller: Principal, file: AnalysisFile | None, key: str, number: int
) -> tuple[dict[str, int], list[QualityGroup]]:
    if file is None:
        return {}, []
    filters = filters_for(caller, None, Filters())
    offset = (number - 1) * PAGE
    with closing(reader.index.session()) as session:
        counts = of_version(reader, ("quality", file.stamp, filters), lambda: analyzed(session, file, filters))
        fault = next((each for each in FAULTS if each == key), None)
        kind = next((each for each in ALIKE if each == key), None)
        if fault is not None:
            return counts, groups_of(key, faulty(session, file, filters, fault, PAGE, offset))
        if kind is not None:
            return counts, groups_of(key, alike(session, file, filters, kind, PAGE, offset))
    return counts, []


def analysis_state(parts: Resources, caller: Principal, file: AnalysisFile | None, version: int) -> dict[str, Any]:
    """Return what pages say about the analysis: its version, a job that makes another, and the form for one.

    Args:
        parts: parts of the service.
        caller: whom the page is shown to.
        file: the newest analysis.
        version: version that the service answers from.
    """
    last = next(iter(parts.jobs.list(kind="analyze", limit=1)), None)
    working: ShownJob | None = None
    if last is not None and not last.is_final:
        working = shown_job(last, cancel_asked=last.state == "running" and parts.jobs.cancel_is_asked(last.id))
    failed: Job | None = last if last is not None and last.state == "failed" else None
    return {
        "analysis": file,
        "version": version,
        "working": working,
        "failed": failed if caller.sees_everything else None,
        "may_analyze": caller.sees_everything and caller.may("admin") and not parts.settings.serve.read_only,
    }


@router.post(f"{QUALITY}/analyze")
async def start_analysis(caller: AdminCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Start the analysis of the newest version."""
    if not caller.sees_everything:
        raise Forbidden("right-missing", "an analysis is of the whole corpus: it needs a token without limits")
    place = MAP if text(fields, "place") == MAP else QUALITY
    # A second one finds the version analyzed, and does nothing.
    await in_thread(submit, parts, caller, "analyze", None, {})
    return redirect(place)
