"""Conditions on values of the metadata, whatever their type: as texts, numbers or times, and in lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

MetadataOperator = Literal[
    "eq", "gt", "gte", "lt", "lte", "in", "is", "contains", "starts", "ends", "empty", "before", "after"
]
"""`eq` to `in` compare with a value: numbers as numbers, texts by their characters. `is` compares with a value as text,
or with an item of a list, `contains` with a part of a text, or with an item of a list, `starts` and `ends` with a part.
`empty` holds for a missing value, null, an empty text or list. `before` and `after` compare with a time."""
_SQL: Mapping[MetadataOperator, str] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "before": "<", "after": ">"}
_PARTS: Mapping[MetadataOperator, str] = {"contains": "contains", "starts": "starts_with", "ends": "ends_with"}
_NUMBERS = "('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')"
Bind = Callable[[Any], str]
"""binds a value and returns its placeholder"""


@dataclass(frozen=True, slots=True)
class MetadataComparison:
    """Condition on a value of the metadata; a missing value meets none but `empty`."""

    path: str
    """dotted path into the metadata"""
    operator: MetadataOperator
    values: tuple[str | float, ...] = ()
    """one value, of which several make alternatives; none for `empty`; seconds since 1970 for `before` and `after`"""
    negated: bool = False
    """True to meet the condition where it does not hold, also for a missing value"""


def metadata_sql(comparison: MetadataComparison, bind: Bind) -> str:
    """Return a condition over the column `metadata`, never NULL."""
    pointers = _pointers(comparison.path)
    if comparison.operator == "empty":
        found = [f"NOT ({' OR '.join(f'coalesce({_filled(each)}, false)' for each in pointers)})"]
    else:
        found = [_compares(each, comparison.operator, value, bind) for value in comparison.values for each in pointers]
    told = f"coalesce({' OR '.join(found)}, false)" if found else "false"
    return f"NOT {told}" if comparison.negated else told


def _pointers(path: str) -> list[str]:
    """Return the JSON pointers that a dotted path may mean, as SQL text: a key may contain dots, as `dc.title` does."""
    escaped = path.replace("~", "~0").replace("/", "~1").replace("'", "''")
    return list(dict.fromkeys((f"/{escaped}", f"/{escaped.replace('.', '/')}")))


def _compares(pointer: str, operator: MetadataOperator, value: str | float, bind: Bind) -> str:
    text, bound = _text(pointer), bind(value)
    if operator == "is":
        return f"{text} = {bound} OR {_holds(pointer, bound)}"
    if operator in _PARTS:
        part = f"json_type(metadata, '{pointer}') NOT IN ('ARRAY', 'OBJECT') AND {_PARTS[operator]}({text}, {bound})"
        return f"{part} OR {_holds(pointer, bound)}" if operator == "contains" else part
    sign = _SQL.get(operator, "=")
    if operator in ("before", "after"):
        return f"{_seconds(pointer)} {sign} {bound}::DOUBLE"
    return f"{text} {sign} {bound}" if isinstance(value, str) else f"TRY_CAST({text} AS DOUBLE) {sign} {bound}::DOUBLE"


def _text(pointer: str) -> str:
    return f"json_extract_string(metadata, '{pointer}')"


def _holds(pointer: str, bound: str) -> str:
    """Return a condition: the value is a list with an item."""
    return f"list_contains({_list(pointer)}, {bound})"


def _list(pointer: str) -> str:
    return f"TRY_CAST(json_extract(metadata, '{pointer}') AS VARCHAR[])"


def _filled(pointer: str) -> str:
    """Return a condition: there is a value, and it is no empty text or list."""
    return f"{_text(pointer)} <> '' AND coalesce(len({_list(pointer)}) > 0, true)"


def _seconds(pointer: str) -> str:
    """Return a value as a time, in seconds since 1970: those are numbers, and texts are dates and times, in UTC."""
    text = _text(pointer)
    number = f"json_type(metadata, '{pointer}') IN {_NUMBERS}"
    return f"CASE WHEN {number} THEN TRY_CAST({text} AS DOUBLE) ELSE epoch(TRY_CAST({text} AS TIMESTAMPTZ)) END"
