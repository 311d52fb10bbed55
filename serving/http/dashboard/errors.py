"""Errors of the dashboard: a page that says what was wrong and what to do."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response
from starlette.types import Scope

from parquetry.serving.http.dashboard.html import HEADERS, NO_FRAME, page
from parquetry.serving.http.problems import Problem
from parquetry.serving.web.rendering import render


def dashboard_error(problem: Problem) -> Response:
    """Return an error as a page."""
    html = render("error.html", frame=NO_FRAME, problem=problem, status=int(problem.status))
    return HTMLResponse(html, problem.status, {**HEADERS, **problem.all_headers})


def sign_in_page(scope: Scope, problem: Problem) -> Response:
    """Return the form to sign in, in the place of a page that needs a token."""
    asked = Request(scope)
    query = asked.url.query
    place = asked.url.path + (f"?{query}" if query else "")
    missing = problem.reason == "token-missing"
    answer = page(
        asked,
        "sign_in.html",
        problem.status,
        next=place,
        refusal="" if missing else problem.detail,
        reason=problem.reason,
    )
    # A script that fetches a part of a page loads the whole page instead.
    answer.headers.update({**problem.all_headers, "HX-Refresh": "true"})
    return answer
