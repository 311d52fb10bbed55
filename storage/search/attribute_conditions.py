"""Conditions on attributes, the flat values of a document's metadata: typed, and combined with and, or."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from parquetry.sources.uploads.identity import STORE_KEY
from parquetry.storage.search.metadata_conditions import MetadataComparison, metadata_sql

AttributeOperator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
AttributeValue = str | float | bool
_SQL: dict[AttributeOperator, str] = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_NUMBERS = "('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')"


@dataclass(frozen=True, slots=True)
class AttributeComparison:
    """Condition on one attribute: a value compares with values of its own type only.

    An attribute that is missing, or of another type, is neither equal, greater nor less; it is not equal, and in no
    list.
    """

    key: str
    """its name, in which dots have no meaning"""
    operator: AttributeOperator
    values: tuple[AttributeValue, ...]
    """one value; several for `in` and `nin`"""


@dataclass(frozen=True, slots=True)
class AttributeGroup:
    """Conditions that must all hold, or of which one must."""

    type: Literal["and", "or"]
    conditions: tuple[AttributeFilter, ...]
    """none hold for `and`, and none can for `or`"""


AttributeFilter = AttributeComparison | MetadataComparison | AttributeGroup


def attribute_sql(condition: AttributeFilter, bind: Callable[[Any], str]) -> str:
    """Return a condition over the column `metadata`, never NULL.

    Args:
        condition: the condition.
        bind: binds a value and returns its placeholder.
    """
    if isinstance(condition, AttributeGroup):
        parts = [attribute_sql(each, bind) for each in condition.conditions]
        if not parts:
            return "true" if condition.type == "and" else "false"
        return f"({f' {condition.type.upper()} '.join(parts)})"
    if isinstance(condition, MetadataComparison):
        return metadata_sql(condition, bind)
    if condition.operator in ("ne", "nin"):
        return f"NOT {_any(condition, '=', bind)}"
    return _any(condition, _SQL.get(condition.operator, "="), bind)


def _any(condition: AttributeComparison, operator: str, bind: Callable[[Any], str]) -> str:
    """Return a condition: the attribute compares so with one of the values."""
    pointer = "/" + condition.key.replace("~", "~0").replace("/", "~1").replace("'", "''")
    text, kind = f"json_extract_string(metadata, '{pointer}')", f"json_type(metadata, '{pointer}')"
    found = []
    for value in condition.values:
        if isinstance(value, bool):
            found.append(f"{kind} = 'BOOLEAN' AND {text} {operator} {bind('true' if value else 'false')}")
        elif isinstance(value, str):
            found.append(f"{kind} = 'VARCHAR' AND {text} {operator} {bind(value)}")
        else:
            found.append(f"{kind} IN {_NUMBERS} AND TRY_CAST({text} AS DOUBLE) {operator} {bind(float(value))}::DOUBLE")
    if not found:
        return "false"
    # The document's own metadata stand beside the attributes that it was handed in with.
    named = f"TRY_CAST(json_extract(metadata, '/{STORE_KEY}/attributes') AS VARCHAR[])"
    own = f"({named} IS NULL OR list_contains({named}, {bind(condition.key)}))"
    return f"coalesce({own} AND ({' OR '.join(found)}), false)"
