"""Callers' filter expressions: one SQL expression over a document's columns, and nothing else.

DuckDB's own parser reads the expression; the parse tree is checked against a list of allowed elements. Everything else
is rejected, so that a newer DuckDB cannot extend what a caller may do.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import duckdb

from parquetry.errors import SettingsError

LONGEST = 10_000
"""maximum number of characters of an expression"""
DEEPEST = 100
"""maximum nesting depth of operators and parentheses"""
_SHOWN = 80
"""characters of an expression that an error message repeats"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _names(
    """
    + - * / // % ** ^ & | << >> || @> <@ && ~~ !~~ ~~* !~~* ~~~ ~ -> ->>
    like_escape not_like_escape ilike_escape not_ilike_escape
    lower lcase upper ucase length len strlen trim ltrim rtrim substr substring left right reverse translate
    contains starts_with ends_with prefix suffix position strpos instr concat concat_ws
    split string_split str_split string_to_array split_part regexp_matches regexp_full_match regexp_extract
    regexp_extract_all strip_accents nfc_normalize levenshtein damerau_levenshtein hamming jaccard
    jaro_similarity jaro_winkler_similarity ascii unicode md5 parse_filename parse_dirname parse_dirpath
    ifnull nullif if greatest least typeof
    abs round floor ceil ceiling trunc sign sqrt cbrt ln log log2 log10 exp power pow mod isnan isfinite isinf
    date_part datepart date_trunc datetrunc date_diff datediff date_sub datesub timezone
    year month day hour minute second dayofweek isodow dayofyear week quarter weekday weekofyear yearweek isoyear
    monthname dayname last_day make_date make_timestamp strftime strptime try_strptime epoch epoch_ms
    to_years to_months to_weeks to_days to_hours to_minutes to_seconds to_milliseconds to_microseconds
    list_value list_contains array_contains list_has array_has list_has_all array_has_all list_has_any array_has_any
    list_position array_position list_indexof list_extract array_extract list_element array_length list_distinct
    list_unique list_sort list_slice array_slice list_filter array_filter
    json_extract json_extract_path json_extract_string json_extract_path_text json_value json_valid json_type
    json_array_length json_keys json_contains json_exists
    """
)
"""Scalar functions that compute from their arguments alone and return no more data than they receive.

Functions that can lengthen a text (`replace`, `repeat`, `list_transform`) are left out: each nesting doubles it.
"""

_CLOCKS = _names(
    "now today current_date current_time current_timestamp localtime localtimestamp get_current_timestamp "
    "get_current_time transaction_timestamp age random gen_random_uuid uuid"
)

_TYPES = _names(
    """
    boolean bool tinyint smallint integer int bigint hugeint utinyint usmallint uinteger ubigint int1 int2 int4 int8
    float real double float4 float8 decimal numeric varchar text string char json uuid date time timestamp timestamptz
    datetime interval list
    """
) | {"timestamp with time zone"}
_OPERATORS = _names(
    "OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_COALESCE OPERATOR_TRY COMPARE_IN COMPARE_NOT_IN "
    "ARRAY_EXTRACT ARRAY_SLICE"
)
_PARTS: Mapping[str, tuple[str, ...]] = {
    "COMPARISON": ("left", "right"),
    "CONJUNCTION": ("children",),
    "OPERATOR": ("children",),
    "BETWEEN": ("input", "lower", "upper"),
    "CAST": ("child",),
}
"""keys of the parts of an expression, by its class"""
_WORDS = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "STAR": "* or COLUMNS",
    "PARAMETER": "a parameter",
    "POSITIONAL_REFERENCE": "a column by number",
    "COLLATE": "COLLATE",
}


@dataclass(frozen=True, slots=True)
class Where:
    """A valid expression for a WHERE clause over the documents."""

    sql: str
    """SQL in its own parentheses"""
    columns: tuple[str, ...]
    """columns of `documents` that it reads"""


@lru_cache(maxsize=256)
def parse_where(expression: str) -> Where:
    """Check a filter expression.

    Args:
        expression: as a caller wrote it, without the word WHERE.

    Raises:
        SettingsError: the text is not one expression over the columns of `documents` and the allowed functions.
    """
    if not expression.strip():
        raise SettingsError("where is empty; write a condition on documents, as pages > 10")
    if "\0" in expression:
        raise SettingsError("where holds a NUL character; leave it out")
    if len(expression) > LONGEST:
        raise SettingsError(f"where has {len(expression)} characters; at most {LONGEST} are read")
    try:
        with duckdb.connect(config={"threads": 1}) as connection:
            tree = _parsed(connection, f"({expression}\n)")
            # `a) OR (b` is one expression only within the surrounding pair.
            _parsed(connection, expression)
        columns = frozenset(_columns(tree))
    except RecursionError:
        raise _refused(expression, f"it is nested more than {DEEPEST} deep") from None
    except _NotAllowed as error:
        raise _refused(expression, str(error)) from None
    return Where(f"({expression}\n)", tuple(sorted(columns)))


class _NotAllowed(Exception):
    """The part of an expression that is not allowed, and its alternative."""


def _refused(expression: str, problem: str) -> SettingsError:
    shown = expression if len(expression) <= _SHOWN else expression[:_SHOWN] + "..."
    return SettingsError(f"where {shown!r}: {problem}")


def _parsed(connection: duckdb.DuckDBPyConnection, condition: str) -> dict[str, Any]:
    """Return the parse tree of a condition, as DuckDB reads it within a statement."""
    statement = f"SELECT 1 FROM documents WHERE {condition}"
    try:
        found = connection.execute("SELECT json_serialize_sql($1)", [statement]).fetchall()
    except duckdb.Error as error:
        raise _NotAllowed(str(error).splitlines()[0]) from error
    read = json.loads(found[0][0])
    if read["error"]:
        problem = str(read["error_message"]).splitlines()[0]
        raise _NotAllowed(f"it is nested more than {DEEPEST} deep" if "expression depth" in problem else problem)
    bare = json.loads(connection.execute("SELECT json_serialize_sql('SELECT 1 FROM documents')").fetchall()[0][0])
    tree = read["statements"][0]["node"].pop("where_clause", None)
    del bare["statements"][0]["node"]["where_clause"]
    # Parameters are recognised by their position.
    del read["statements"][0]["named_param_map"], bare["statements"][0]["named_param_map"]
    if tree is None or read != bare:
        raise _NotAllowed("it is more than one expression; give a condition alone")
    return cast(dict[str, Any], tree)


def _columns(node: Any, lambdas: frozenset[str] = frozenset(), depth: int = 0) -> Iterator[str]:
    """Yield the columns that an expression reads; raise if a part is not allowed."""
    if depth > DEEPEST:
        raise _NotAllowed(f"it is nested more than {DEEPEST} deep")
    match node["class"]:
        case "CONSTANT":
            parts: list[Any] = []
        case "COLUMN_REF":
            parts = []
            yield from _column(node["column_names"], lambdas)
        case "FUNCTION":
            parts = _arguments(node)
        case "CASE":
            checks = node["case_checks"]
            parts = [*(check[key] for check in checks for key in ("when_expr", "then_expr")), node["else_expr"]]
        case "LAMBDA":
            parts = [node["expr"]]
            if node["syntax_type"] == "LAMBDA_KEYWORD":
                lambdas |= _parameters(node["lhs"])
            else:
                # The parser reads `metadata -> 'key'` as a lambda; only the binder distinguishes them.
                parts.append(node["lhs"])
        case "OPERATOR" if node["type"] not in _OPERATORS:
            raise _NotAllowed(f"{node['type'].lower()} is not allowed in a filter")
        case "COMPARISON" | "CONJUNCTION" | "OPERATOR" | "BETWEEN" | "CAST" as kind:
            if kind == "CAST":
                _check_type(node["type_expr"])
            parts = [part for key in _PARTS[kind] for part in (node[key] if key == "children" else [node[key]])]
        case other:
            raise _NotAllowed(f"{_WORDS.get(other, other)} is not allowed in a filter")
    for part in parts:
        yield from _columns(part, lambdas, depth + 1)


def _column(path: Sequence[str], lambdas: frozenset[str]) -> Iterator[str]:
    from parquetry.storage.lake import schema

    *table, name = (part.lower() for part in path)
    if not table and name in lambdas:
        return
    if not table and name in _CLOCKS:
        raise _NotAllowed(_clock(name))
    if table not in ([], ["documents"]) or name not in schema.DOCUMENTS.names:
        near = difflib.get_close_matches(name, schema.DOCUMENTS.names, 1)
        raise _NotAllowed(
            f"there is no column {'.'.join(path)!r} of documents" + (f"; did you mean {near[0]!r}?" if near else "")
        )
    yield name


def _arguments(node: Mapping[str, Any]) -> list[Any]:
    path = node["qualified_name"]["path"]
    name = path[-1].lower()
    if len(path) > 1:
        raise _NotAllowed(f"write {name}(...) instead of {'.'.join(path)}(...)")
    if name in _CLOCKS:
        raise _NotAllowed(_clock(f"{name}()"))
    if name not in FUNCTIONS:
        near = difflib.get_close_matches(name, FUNCTIONS, 1, 0.75)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise _NotAllowed(f"the function {name!r} is not allowed in a filter{hint}")
    if node["filter"] is not None or node["distinct"] or node["order_bys"]["orders"]:
        raise _NotAllowed(f"{name}() takes no DISTINCT, FILTER or ORDER BY")
    return [argument["expression"] for argument in node["arguments"]]


def _parameters(node: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of a lambda's parameters."""
    if node["class"] == "FUNCTION" and node["qualified_name"]["path"] == ["row"]:
        return frozenset().union(*(_parameters(argument["expression"]) for argument in node["arguments"]))
    if node["class"] == "COLUMN_REF" and len(node["column_names"]) == 1:
        return frozenset([node["column_names"][0].lower()])
    raise _NotAllowed("a lambda's parameters are names")


def _check_type(node: Mapping[str, Any], depth: int = 0) -> None:
    if node["class"] == "CONSTANT" and depth:
        return
    path = node["qualified_name"]["path"] if node["class"] == "TYPE" else [node["class"]]
    if len(path) > 1 or path[0].lower() not in _TYPES:
        raise _NotAllowed(f"the type {'.'.join(path)} is not allowed in a filter")
    for child in node["children"]:
        _check_type(child, depth + 1)


def _clock(name: str) -> str:
    return f"{name} is not allowed: a filter means the same whenever it is asked; write the date"
