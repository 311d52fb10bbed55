"""Filters as requests of all dialects name them, and the conditions on documents that they mean."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from parquetry.model import What
from parquetry.storage.search.filters import Filters, MetadataComparison

Scalar = str | int | float | bool


class RequestModel(BaseModel):
    """Base of requests: an unknown field is an error that names it."""

    model_config = ConfigDict(extra="forbid")


class Range(RequestModel):
    """Bounds on a value of the metadata."""

    gt: float | str | None = None
    gte: float | str | None = None
    lt: float | str | None = None
    lte: float | str | None = None
    in_: list[Scalar] | None = Field(None, alias="in", max_length=1000)


class RequestFilters(RequestModel):
    """Conditions on documents; all of them must hold, before anything is ranked."""

    filename: str | None = Field(None, min_length=1, max_length=1024, description="Glob.", examples=["*.md"])
    tags: list[str] = Field(default_factory=list, max_length=100, examples=[["policy"]])
    user_id: str | None = Field(None, max_length=255)
    source: str | None = Field(None, max_length=1024)
    media_type: str | None = Field(None, max_length=255)
    metadata: dict[str, Scalar | Range] = Field(default_factory=dict, examples=[{"year": {"gte": 2020}}])
    since: datetime | None = None
    until: datetime | None = None


def filters_of(asked: RequestFilters, what: What = "documents") -> Filters:
    """Return the filters of a request, without its caller.

    Raises:
        SettingsError: a path into the metadata is not valid, or a time has no time zone.
    """
    pairs, comparisons = [], []
    for path, value in asked.metadata.items():
        if isinstance(value, Range):
            comparisons += _comparisons(path, value)
        elif isinstance(value, bool):
            pairs.append((path, "true" if value else "false"))
        elif isinstance(value, str):
            pairs.append((path, value))
        else:
            comparisons.append(MetadataComparison(path, "eq", (value,)))
    return Filters(
        filename=asked.filename,
        tags=tuple(asked.tags),
        media_type=asked.media_type,
        since=asked.since,
        until=asked.until,
        metadata=tuple(pairs),
        comparisons=tuple(comparisons),
        user_id=asked.user_id,
        origin=asked.source,
        what=what,
    )


def _comparisons(path: str, bounds: Range) -> list[MetadataComparison]:
    found = []
    for operator in ("gt", "gte", "lt", "lte"):
        value = getattr(bounds, operator)
        if value is not None:
            found.append(MetadataComparison(path, operator, (value,)))
    if bounds.in_ is not None:
        values = tuple(("true" if each else "false") if isinstance(each, bool) else each for each in bounds.in_)
        found.append(MetadataComparison(path, "in", values))
    return found
