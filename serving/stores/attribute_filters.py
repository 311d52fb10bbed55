"""Filters on attributes in OpenAI's form, and the attributes of documents. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any, get_args

from parquetry.serving.access.refusals import UnusableParameter
from parquetry.sources.uploads.identity import STORE_KEY
from parquetry.storage.search.attribute_conditions import (
    AttributeComparison,
    AttributeFilter,
    AttributeGroup,
    AttributeOperator,
    AttributeValue,
)

MOST_ATTRIBUTES, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512
DEEPEST = 8
"""levels of `and` and `or` in a filter"""
MOST_COMPARISONS = 100
"""comparisons in a filter"""
MOST_VALUES = 1_000
"""values of a list in a filter"""
_OPERATORS: tuple[AttributeOperator, ...] = get_args(AttributeOperator)


def attribute_filter(given: object, denied: Collection[str] = ()) -> AttributeFilter:
    """Return a filter of a request.

    Args:
        given: a comparison, `{type, key, value}`, or `{type: and | or, filters: [...]}`.
        denied: keys that no caller may see: for a filter, no document has them.

    Raises:
        UnusableParameter: it has another form, or is too large.
    """
    return _Parser(denied).parsed(given, "filters", 1)


class _Parser:
    def __init__(self, denied: Collection[str]) -> None:
        self._denied = denied
        self._comparisons = 0

    def parsed(self, given: object, place: str, depth: int) -> AttributeFilter:
        if not isinstance(given, Mapping):
            raise _unusable(place, "is not an object with a type")
        kind = given.get("type")
        if kind in ("and", "or"):
            return self._group(given, place, depth)
        if kind not in _OPERATORS:
            raise _unusable(f"{place}.type", f"is not one of and, or, {', '.join(_OPERATORS)}")
        return self._comparison(given, kind, place)

    def _group(self, given: Mapping[str, Any], place: str, depth: int) -> AttributeGroup:
        _only(given, place, {"type", "filters"})
        parts = given.get("filters")
        if not isinstance(parts, list):
            raise _unusable(f"{place}.filters", "is not a list of filters")
        if depth > DEEPEST:
            raise _unusable(place, f"is nested more than {DEEPEST} levels deep")
        conditions = (self.parsed(part, f"{place}.filters.{number}", depth + 1) for number, part in enumerate(parts))
        return AttributeGroup(given["type"], tuple(conditions))

    def _comparison(self, given: Mapping[str, Any], kind: AttributeOperator, place: str) -> AttributeFilter:
        _only(given, place, {"type", "key", "value"})
        key = given.get("key")
        if not isinstance(key, str) or not key:
            raise _unusable(f"{place}.key", "is not the name of an attribute")
        if "value" not in given:
            raise _unusable(f"{place}.value", "is missing")
        self._comparisons += 1
        if self._comparisons > MOST_COMPARISONS:
            raise _unusable(place, f"a filter has at most {MOST_COMPARISONS} comparisons")
        value = given["value"]
        if kind in ("in", "nin"):
            if not isinstance(value, list):
                raise _unusable(f"{place}.value", f"{kind} compares with a list of texts or numbers")
            if len(value) > MOST_VALUES:
                raise _unusable(f"{place}.value", f"a list has at most {MOST_VALUES} values")
            values = tuple(_value(each, f"{place}.value.{number}") for number, each in enumerate(value))
        else:
            values = (_value(value, f"{place}.value"),)
        if key in self._denied:
            # As for a document without the attribute.
            return AttributeGroup("and" if kind in ("ne", "nin") else "or", ())
        return AttributeComparison(key, kind, values)


def _unusable(place: str, problem: str) -> UnusableParameter:
    return UnusableParameter("invalid-request", f"{place}: {problem}", place)


def _only(given: Mapping[str, Any], place: str, known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise _unusable(f"{place}.{str(name)[:80]}", "unknown field")


def _value(value: object, place: str) -> AttributeValue:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1e300:
        return value
    raise _unusable(place, "is not a text, a number, true or false")


def shown_attributes(metadata: Mapping[str, Any], denied: Collection[str] = ()) -> dict[str, AttributeValue]:
    """Return the attributes of a document, within the limits of OpenAI's form.

    Args:
        metadata: those of the document; one that was attached names its attributes.
        denied: keys that no caller may see.
    """
    own = metadata.get(STORE_KEY)
    names = own.get("attributes") if isinstance(own, Mapping) else None
    keys = names if isinstance(names, list) else list(metadata)
    found: dict[str, AttributeValue] = {}
    for key in keys:
        value = metadata.get(key)
        if key in denied or key == STORE_KEY or not isinstance(value, str | int | float | bool):
            continue
        if len(key) > LONGEST_KEY or (isinstance(value, str) and len(value) > LONGEST_VALUE):
            continue
        found[key] = value
        if len(found) == MOST_ATTRIBUTES:
            break
    return found


def attributes_of(metadata: str | None, denied: Collection[str] = ()) -> dict[str, AttributeValue]:
    """Return the attributes of a document from its metadata as they are stored."""
    return shown_attributes(json.loads(metadata or "{}"), denied)
