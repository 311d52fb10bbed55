"""Two searches for one question side by side: two ways of searching, or two versions of the corpus."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from parquetry.errors import ParquetryError, SettingsError
from parquetry.serving.access.refusals import Forbidden
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import PublishedParts, SearchCaller
from parquetry.serving.http.dashboard.html import page
from parquetry.serving.http.dashboard.paths import SEARCH
from parquetry.serving.http.dashboard.searching import (
    MODES,
    RESULTS,
    AskedForm,
    Name,
    filters_of_form,
    may_see_versions,
    may_use_sql,
)
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.problems import known_problem
from parquetry.serving.http.turns import takes_turns
from parquetry.serving.search.service import Reader, SearchRequest, SearchResponse
from parquetry.serving.service.resources import Resources
from parquetry.serving.web.compared import compared
from parquetry.serving.web.results import SearchForm, results_of
from parquetry.storage.search.document_browsing import facets
from parquetry.storage.search.filters import Filters

router = APIRouter(include_in_schema=False, route_class=JsonRoute)
_MOST_VERSIONS = 50
"""versions that are offered"""
Version = Annotated[str, Query(max_length=20)]


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """Mode and version of one side."""

    mode: str
    version: int | None
    """None for the newest"""


@dataclass(frozen=True, slots=True)
class OfferedVersion:
    """A version to choose."""

    version: int
    at: datetime


@router.get(f"{SEARCH}/compare")
@takes_turns(long=lambda values: bool(values["version"] or values["version2"]))
def show_comparison(
    request: Request,
    caller: SearchCaller,
    parts: PublishedParts,
    asked: AskedForm,
    mode2: Name = "text",
    version: Version = "",
    version2: Version = "",
) -> Response:
    """Show what two searches for one question find."""
    left = ComparedSide(asked.mode, _number(version))
    right = ComparedSide(mode2 if mode2 in MODES else "text", _number(version2))
    shown: dict[str, Any] = {"comparison": None, "problem": None}
    status, versions = 200, list[OfferedVersion]()
    with parts.follower.reader() as reader:
        if may_see_versions(caller):
            history = reader.history(_MOST_VERSIONS)
            versions = [OfferedVersion(each.version, each.at) for each in history if each.version]
        elif left.version is not None or right.version is not None:
            raise Forbidden(
                "right-missing",
                "earlier versions hold what was deleted or hidden since: searching them needs the right 'admin' and a "
                "token without user, organization and namespaces",
            )
        with closing(reader.index.session()) as session:
            choices = facets(session, filters_for(caller, None, Filters()))
        if asked.q:
            record = Recorded(request, caller, "knowledge.retrieve", asked.namespace)
            try:
                filters = filters_for(caller, None, filters_of_form(parts, caller, asked))
                both = [_searched(parts, reader, asked, each, filters) for each in (left, right)]
            except ParquetryError as error:
                record.failed(error, [asked.q])
                if not isinstance(error, SettingsError):
                    raise
                problem = known_problem(error)
                shown["problem"], status = problem, int(problem.status)
            else:
                record.answered([hit for each in both for hit in each.hits], [asked.q])
                language = parts.settings.search.language
                shown["comparison"] = compared(*(results_of(asked.q, each.hits, language) for each in both))
    return page(
        request,
        "compare.html",
        status,
        asked=asked,
        sides=(left, right),
        choices=choices,
        versions=versions,
        may_use_sql=may_use_sql(caller),
        may_read=caller.may("read"),
        **shown,
    )


def _number(given: str) -> int | None:
    return int(given) if given.isascii() and given.isdigit() else None


def _searched(
    parts: Resources, reader: Reader, asked: SearchForm, side: ComparedSide, filters: Filters
) -> SearchResponse:
    searched = SearchRequest(asked.q, MODES[side.mode], k=RESULTS, filters=filters)
    if side.version is None or side.version == reader.snapshot.version:
        return reader.search(searched)
    with parts.earlier.reader(side.version) as earlier:
        return earlier.search(searched)
