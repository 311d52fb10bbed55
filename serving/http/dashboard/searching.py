"""Parts that the pages of searches share: the form in the address, its filters, and versions to search."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from fastapi import Depends, Query

from parquetry.errors import SettingsError
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import Forbidden
from parquetry.serving.service.resources import Resources
from parquetry.serving.web.results import SearchForm
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Mode
from parquetry.storage.search.where import parse_where

RESULTS = 20
MODES: dict[str, Mode] = {"hybrid": "hybrid", "vector": "vector", "text": "text"}
Name = Annotated[str, Query(max_length=1024)]


def _form(
    q: Annotated[str, Query(max_length=8192)] = "",
    mode: Name = "hybrid",
    namespace: Name = "",
    source: Name = "",
    media_type: Annotated[str, Query(max_length=1024, alias="type")] = "",
    tag: Name = "",
    since: Name = "",
    until: Name = "",
    where: Name = "",
) -> SearchForm:
    return SearchForm(
        q.strip(),
        mode if mode in MODES else "hybrid",
        namespace or None,
        source or None,
        media_type or None,
        tag.strip() or None,
        _day(since),
        _day(until),
        where.strip() or None,
    )


AskedForm = Annotated[SearchForm, Depends(_form)]
"""the form of a search, as the address has it"""


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


def may_use_sql(caller: Principal) -> bool:
    """Return True if a caller may give a condition in SQL.

    Its functions are a closed list, and it is computed for documents alone that the caller may see. But some of them
    take as long as their writer wants, so it is for those who operate the service.
    """
    return caller.may("admin")


def may_see_versions(caller: Principal) -> bool:
    """Return True if a caller may search earlier versions: they hold what was deleted or hidden since."""
    return caller.may("admin") and caller.sees_everything


def filters_of_form(parts: Resources, caller: Principal, asked: SearchForm) -> Filters:
    """Return the filters of a form, without its caller.

    Raises:
        Forbidden: a condition in SQL is not for this caller.
        SettingsError: it is not valid, or is about metadata of which the settings hide keys.
    """
    if asked.where is not None:
        if not may_use_sql(caller):
            raise Forbidden("right-missing", "a condition in SQL needs the right 'admin'; use the other filters")
        if "metadata" in parse_where(asked.where).columns and parts.settings.metadata_denylists.knowledge:
            raise SettingsError(
                "the condition reads metadata, of which metadata_denylists hides keys in this service; use `parquetry "
                "search --where` on its machine"
            )
    return Filters(
        namespaces=(asked.namespace,) if asked.namespace else (),
        source=asked.source,
        media_type=asked.media_type,
        tags=(asked.tag,) if asked.tag else (),
        since=_midnight(asked.since),
        # The last day is part of what is asked for.
        until=_midnight(asked.until, later=1),
        where=asked.where,
    )
