"""The search page, with the explanation of its results and judgements on them."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import FormData

from parquetry.errors import ParquetryError, SettingsError
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import PublishedParts, SearchCaller
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import SEARCH
from parquetry.serving.http.dashboard.searching import (
    MODES,
    RESULTS,
    AskedForm,
    filters_of_form,
    may_use_sql,
)
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.judging import demand_judging, result_to_judge
from parquetry.serving.http.problems import Problem, known_problem
from parquetry.serving.http.turns import takes_turns
from parquetry.serving.search.candidates import candidates_of
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.feedback import Judge
from parquetry.serving.service.resources import Resources
from parquetry.serving.web.explained import explained
from parquetry.serving.web.results import SearchForm, results_of
from parquetry.storage.search.document_browsing import facets
from parquetry.storage.search.filters import Filters

# Its searches wait their turns.
router = APIRouter(include_in_schema=False, route_class=JsonRoute)
_LONGEST_QUESTION = 8192
_VERDICTS = {"yes": True, "no": False, "none": None}


@router.get(SEARCH)
@takes_turns()
def show_search(
    request: Request,
    caller: SearchCaller,
    parts: PublishedParts,
    asked: AskedForm,
    explain: Annotated[str, Query(max_length=8)] = "",
) -> Response:
    """Show the passages that answer a question, best first."""
    shown: dict[str, Any] = {"results": None, "seconds": 0.0, "explanation": None, "judged": {}, "problem": None}
    status = 200
    with parts.follower.reader() as reader:
        with closing(reader.index.session()) as session:
            choices = facets(session, filters_for(caller, None, Filters()))
        if asked.q:
            try:
                shown |= _found(request, caller, parts, reader, asked, explain=bool(explain))
            except SettingsError as error:
                # What was typed stays, so that it can be corrected.
                problem = known_problem(error)
                shown["problem"], status = problem, int(problem.status)
    return page(
        request,
        "search.html",
        status,
        asked=asked,
        choices=choices,
        explain=bool(explain),
        may_use_sql=may_use_sql(caller),
        may_read=caller.may("read"),
        may_judge=not parts.settings.serve.read_only,
        back=urlencode({"q": asked.q, "mode": asked.mode, **asked.filters, **({"explain": "1"} if explain else {})}),
        **shown,
    )


def _found(
    request: Request, caller: Principal, parts: Resources, reader: Reader, asked: SearchForm, *, explain: bool
) -> dict[str, Any]:
    record = Recorded(request, caller, "knowledge.retrieve", asked.namespace)
    try:
        filters = filters_for(caller, None, filters_of_form(parts, caller, asked))
        searched = SearchRequest(asked.q, MODES[asked.mode], k=RESULTS, filters=filters)
        found = reader.search(searched)
        explanation = candidates_of(reader, searched) if explain else None
    except ParquetryError as error:
        record.failed(error, [asked.q])
        raise
    record.answered(found.hits, [asked.q])
    return {
        "results": results_of(asked.q, found.hits, parts.settings.search.language),
        "seconds": found.seconds,
        "judged": parts.feedback.judged(Judge.of(caller), asked.q),
        "explanation": explanation and explained(explanation),
    }


@router.post(f"{SEARCH}/feedback")
async def judge_result(request: Request, caller: SearchCaller, parts: PublishedParts, fields: CheckedForm) -> Response:
    """Keep a judgement on a result, change it, or take it back."""
    demand_judging(parts)
    verdict = await in_thread(_judge, parts, caller, fields)
    back = text(fields, "back")
    if request.headers.get("hx-request") == "true":
        return page(
            request,
            "judge_part.html",
            q=text(fields, "q"),
            document_id=text(fields, "document"),
            chunk_id=text(fields, "chunk"),
            verdict=verdict,
            back=back,
        )
    return redirect(f"{SEARCH}?{back}" if back.isascii() and back.isprintable() else SEARCH)


def _judge(parts: Resources, caller: Principal, fields: FormData) -> bool | None:
    query, given = text(fields, "q").strip(), text(fields, "relevant")
    if not query or len(query) > _LONGEST_QUESTION or given not in _VERDICTS:
        raise Problem(422, "invalid-request", "a judgement needs a question, a result, and whether it is relevant")
    judge, verdict = Judge.of(caller), _VERDICTS[given]
    with parts.follower.reader() as reader:
        result = result_to_judge(reader, caller, text(fields, "document"), text(fields, "chunk"))
        version = reader.snapshot.version
    if verdict is None:
        parts.feedback.take_back(judge, query, result)
    else:
        parts.feedback.judge(judge, query, result, relevant=verdict, version=version)
    return verdict
