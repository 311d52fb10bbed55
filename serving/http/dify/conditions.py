"""Conditions on metadata as Dify writes them, and what they mean here. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from parquetry.serving.access.refusals import UnusableParameter
from parquetry.serving.http.dify.models import (
    LONGEST_VALUE,
    MOST_VALUES,
    MetadataCondition,
    MetadataConditions,
    Scalar,
    Value,
)
from parquetry.storage.search.attribute_conditions import AttributeFilter, AttributeGroup
from parquetry.storage.search.metadata_conditions import MetadataComparison, MetadataOperator

Kind = Literal["text", "texts", "number", "time", "none"]
OPERATORS: Mapping[str, tuple[MetadataOperator, Kind, bool]] = {
    "contains": ("contains", "text", False),
    "not contains": ("contains", "text", True),
    "start with": ("starts", "text", False),
    "end with": ("ends", "text", False),
    "is": ("is", "text", False),
    "is not": ("is", "text", True),
    "in": ("is", "texts", False),
    "not in": ("is", "texts", True),
    "empty": ("empty", "none", False),
    "not empty": ("empty", "none", True),
    "=": ("eq", "number", False),
    "≠": ("eq", "number", True),
    ">": ("gt", "number", False),
    "<": ("lt", "number", False),
    "≥": ("gte", "number", False),
    "≤": ("lte", "number", False),
    "before": ("before", "time", False),
    "after": ("after", "time", False),
}
"""Dify's operator -> ours, the kind of its value, and True if it is the opposite"""


def condition_of(asked: MetadataConditions | None, denied: Collection[str]) -> AttributeFilter | None:
    """Return the condition of a request; None if it has none.

    Args:
        asked: as in the request.
        denied: keys that no caller may see: for a condition, no document has them.

    Raises:
        UnusableParameter: an operator is not one of Dify's, or a value does not fit it.
    """
    if asked is None or not asked.conditions:
        return None
    parts = [_one(each, f"metadata_condition.conditions.{n}", denied) for n, each in enumerate(asked.conditions)]
    return AttributeGroup(asked.logical_operator, tuple(parts))


def _one(asked: MetadataCondition, place: str, denied: Collection[str]) -> AttributeFilter:
    known = OPERATORS.get(asked.comparison_operator)
    if known is None:
        raise _unusable(
            f"{place}.comparison_operator", f"{asked.comparison_operator!r} is not one of: {', '.join(OPERATORS)}"
        )
    operator, kind, negated = known
    values = _values(asked.value, kind, asked.comparison_operator, f"{place}.value")
    names = [asked.name] if isinstance(asked.name, str) else asked.name
    if not names or not all(all(name.split(".")) for name in names):
        raise _unusable(f"{place}.name", "is not the name of a metadata field")
    found: list[AttributeFilter] = []
    for name in names:
        if name.partition(".")[0] in denied:
            # As for a document without the field.
            met = negated != (operator == "empty")
            found.append(AttributeGroup("and" if met else "or", ()))
        else:
            found.append(MetadataComparison(name, operator, values, negated))
    # The opposite of "any of these fields" is "none of them".
    return found[0] if len(found) == 1 else AttributeGroup("and" if negated else "or", tuple(found))


def _values(value: Value | None, kind: Kind, operator: str, place: str) -> tuple[str | float, ...]:
    if kind == "none":
        return ()
    if value is None:
        raise _unusable(place, f"{operator!r} needs a value")
    if kind == "texts":
        # Dify's own knowledge takes a text with commas for a list, too.
        items: Sequence[Scalar] = (
            [part.strip() for part in value.split(",")]
            if isinstance(value, str)
            else (value if isinstance(value, list) else [value])
        )
        if len(items) > MOST_VALUES:
            raise _unusable(place, f"a list has at most {MOST_VALUES} values")
        return tuple(_text(each, place) for each in items)
    if isinstance(value, list):
        raise _unusable(place, f"{operator!r} compares with one value, not with a list")
    if kind == "text":
        return (_text(value, place),)
    return (_number(value, operator, place) if kind == "number" else _time(value, operator, place),)


def _text(value: Scalar, place: str) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > LONGEST_VALUE:
        raise _unusable(place, f"a value has at most {LONGEST_VALUE} characters")
    return text


def _number(value: Scalar, operator: str, place: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise _unusable(place, f"{operator!r} compares with a number")
    return number


def _time(value: Scalar, operator: str, place: str) -> float:
    """Return a time in seconds since 1970: a number is that, a text is a date or a time, without a zone in UTC."""
    if not isinstance(value, str):
        return _number(value, operator, place)
    try:
        moment = datetime.fromisoformat(value.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise _unusable(
            place,
            f"{operator!r} compares with a date as 2031-03-01, a time as 2031-03-01T09:30Z, or seconds since 1970",
        ) from None


def _unusable(place: str, problem: str) -> UnusableParameter:
    return UnusableParameter("invalid-request", f"{place}: {problem}", place)
