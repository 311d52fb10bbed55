"""Filters as requests of all dialects name them, and the conditions on documents that they mean."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parquetry.model import What
from parquetry.settings.serving import DenylistSettings
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.search.attribute_conditions import AttributeGroup
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.metadata_conditions import MetadataComparison

MOST_FIELDS = 100
"""fields of one object of a request; more are refused with one error, instead of one for each"""
MOST_CONDITIONS = 50
"""paths of the metadata that a request names"""
MOST_ALTERNATIVES = 1000
"""values of all lists `in` of a request"""
_LONGEST_PATH = 1024
_NOTHING_DENIED = DenylistSettings()
Text = Annotated[str, Field(max_length=1024)]
"""item of a list: a tag, the name of a source"""
_Number = Annotated[float, Field(allow_inf_nan=False)]
Scalar = str | Annotated[int, Field(ge=-(2**63), lt=2**63)] | _Number | bool


class RequestModel(BaseModel):
    """Base of requests: an unknown field is an error that names it."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > MOST_FIELDS:
            raise ValueError(f"has {len(given):,} fields, more than any request has")
        return given


class Range(RequestModel):
    """Bounds on a value of the metadata."""

    gt: _Number | str | None = None
    gte: _Number | str | None = None
    lt: _Number | str | None = None
    lte: _Number | str | None = None
    in_: list[Scalar] | None = Field(None, alias="in", max_length=MOST_ALTERNATIVES, fail_fast=True)


class RequestFilters(RequestModel):
    """Conditions on documents; all of them must hold, before anything is ranked."""

    filename: str | None = Field(None, min_length=1, max_length=1024, description="Glob.", examples=["*.md"])
    tags: list[Text] = Field(default_factory=list, max_length=100, examples=[["policy"]], fail_fast=True)
    user_id: str | None = Field(None, max_length=255)
    source: str | None = Field(None, max_length=1024)
    media_type: str | None = Field(None, max_length=255)
    metadata: dict[str, Scalar | Range] = Field(
        default_factory=dict, max_length=MOST_CONDITIONS, examples=[{"year": {"gte": 2020}}]
    )
    since: datetime | None = None
    until: datetime | None = None

    @field_validator("metadata", mode="before")
    @classmethod
    def _bounded(cls, given: Any) -> Any:
        # Before the values are looked at: each wrong one would be an error of its own.
        if not isinstance(given, dict):
            return given
        if len(given) > MOST_CONDITIONS:
            raise ValueError(f"names {len(given):,} paths; a request may name {MOST_CONDITIONS}")
        if any(len(path) > _LONGEST_PATH for path in given):
            raise ValueError(f"a path into the metadata has at most {_LONGEST_PATH:,} characters")
        lists = [each["in"] for each in given.values() if isinstance(each, dict) and isinstance(each.get("in"), list)]
        if sum(map(len, lists)) > MOST_ALTERNATIVES:
            raise ValueError(f"all lists `in` together hold at most {MOST_ALTERNATIVES:,} values")
        return given


def filters_of(
    asked: RequestFilters, what: What = "documents", denylists: DenylistSettings = _NOTHING_DENIED
) -> Filters:
    """Return the filters of a request, without its caller.

    Args:
        asked: the conditions of the request.
        what: documents, entries, or both.
        denylists: keys of the metadata that no answer shows: for a condition, nothing has them either, since answers to
            it would tell their values.

    Raises:
        SettingsError: a path into the metadata is not valid, or a time has no time zone.
    """
    denied = denylists.of(what)
    is_denied = any(_is_below(path, key) for path in asked.metadata for key in denied)
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
        # Lists of documents call the source of what was handed in so.
        origin=UPLOADS if asked.source == "upload" else asked.source,
        what=what,
        attributes=AttributeGroup("or", ()) if is_denied else None,
    )


def _is_below(path: str, key: str) -> bool:
    """Return True if a dotted path leads to a key of the metadata, or into its value."""
    return path == key or path.startswith(f"{key}.")


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
