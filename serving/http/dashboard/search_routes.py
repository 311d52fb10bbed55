"""The search page."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from parquetry.errors import ParquetryError
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import PublishedParts, SearchCaller
from parquetry.serving.http.dashboard.html import page
from parquetry.serving.http.dashboard.paths import SEARCH
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.turns import takes_turns
from parquetry.serving.search.service import SearchRequest
from parquetry.serving.web.results import SearchForm, results_of
from parquetry.storage.search.document_browsing import facets
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Mode

# Its searches wait their turns.
router = APIRouter(include_in_schema=False, route_class=JsonRoute)
RESULTS = 20
Name = Annotated[str, Query(max_length=1024)]
_MODES: dict[str, Mode] = {"hybrid": "hybrid", "vector": "vector", "text": "text"}


def _day(value: str) -> date | None:
    """Return a day as the form has it; None for none, or for one that is none: the filter is shown empty then."""
    try:
        found = date.fromisoformat(value)
    except ValueError:
        return None
    return found if 1 < found.year < 9999 else None


def _midnight(day: date | None, later: int = 0) -> datetime | None:
    """Return the beginning of a day in UTC, or of one that is some days later."""
    return None if day is None else datetime.combine(day + timedelta(days=later), time(), UTC)


def _filters(asked: SearchForm) -> Filters:
    return Filters(
        namespaces=(asked.namespace,) if asked.namespace else (),
        source=asked.source,
        media_type=asked.media_type,
        tags=(asked.tag,) if asked.tag else (),
        since=_midnight(asked.since),
        # The last day is part of what is asked for.
        until=_midnight(asked.until, later=1),
    )


@router.get(SEARCH)
@takes_turns()
def show_search(
    request: Request,
    caller: SearchCaller,
    parts: PublishedParts,
    q: Annotated[str, Query(max_length=8192)] = "",
    mode: Name = "hybrid",
    namespace: Name = "",
    source: Name = "",
    media_type: Annotated[str, Query(max_length=1024, alias="type")] = "",
    tag: Name = "",
    since: Name = "",
    until: Name = "",
) -> Response:
    """Show the passages that answer a question, best first."""
    asked = SearchForm(
        q.strip(),
        mode if mode in _MODES else "hybrid",
        namespace or None,
        source or None,
        media_type or None,
        tag.strip() or None,
        _day(since),
        _day(until),
    )
    answer: dict[str, Any] = {"results": None, "seconds": 0.0}
    with parts.follower.reader() as reader:
        everything = filters_for(caller, None, Filters())
        with closing(reader.index.session()) as session:
            choices = facets(session, everything)
        if asked.q:
            filters = filters_for(caller, None, _filters(asked))
            record = Recorded(request, caller, "knowledge.retrieve", asked.namespace)
            try:
                found = reader.search(SearchRequest(asked.q, _MODES[asked.mode], k=RESULTS, filters=filters))
            except ParquetryError as error:
                record.failed(error, [asked.q])
                raise
            record.answered(found.hits, [asked.q])
            results = results_of(asked.q, found.hits, parts.settings.search.language)
            answer = {"results": results, "seconds": found.seconds}
    return page(request, "search.html", asked=asked, choices=choices, **answer)
