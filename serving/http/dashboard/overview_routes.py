"""The first page: a corpus at a glance."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from parquetry.serving.http.callers import Parts, ReadCaller
from parquetry.serving.http.dashboard.html import page
from parquetry.serving.web.overview import overview_page

router = APIRouter(include_in_schema=False)


@router.get("/")
def show_overview(request: Request, caller: ReadCaller, parts: Parts) -> Response:
    """Show the size of the corpus, its sources, what failed and what it cost."""
    if parts.follower.version is None:
        return page(request, "first_run.html", problem=parts.follower.problem and _PROBLEM)
    with parts.follower.reader() as reader:
        found = overview_page(reader, caller)
    behind = parts.follower.problem and _PROBLEM
    return page(request, "overview.html", overview=found, problem=behind)


_PROBLEM = "The newest version cannot be read; the log of the service says why."
"""of the follower; its own words may name files, which concern the operator alone"""
