"""A filter expression is a single expression over a document's columns, regardless of its text."""

import json

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.errors import SettingsError
from parquetry.storage.lake import schema
from parquetry.storage.search.where import FUNCTIONS, LONGEST, parse_where


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("pages > 10", ("pages",)),
        ("Pages > 10 AND documents.TITLE ILIKE '%oak%'", ("pages", "title")),
        ("\"title\" = 'x'", ("title",)),
        ("metadata->>'$.author' = 'Ada'", ("metadata",)),
        ("(metadata->'author') IS NOT NULL", ("metadata",)),
        ("list_contains(tags, 'red') OR 'new' IN tags", ("tags",)),
        ("len(list_filter(tags, lambda tag: tag LIKE 'r%')) > 0", ("tags",)),
        ("modified_at >= DATE '2031-03-01' - INTERVAL 3 DAY", ("modified_at",)),
        ("extract(year FROM modified_at) = 2031", ("modified_at",)),
        ("modified_at::TIMESTAMP WITH TIME ZONE > '2031-01-01'", ("modified_at",)),
        ("TRY_CAST(title AS DECIMAL(10, 2)) BETWEEN 1 AND 2", ("title",)),
        ("CASE WHEN pages IN (1, 2) THEN size ELSE characters END > 3", ("characters", "pages", "size")),
        ("title IS NOT DISTINCT FROM filename", ("filename", "title")),
        ("regexp_matches(path, '^a/.*\\.md$') AND NOT removed", ("path", "removed")),
        ("round(size / 1024, 1) // 2 % 3 = -1", ("size",)),
        ("coalesce(nullif(title, ''), filename) = 'a' || 'b'", ("filename", "title")),
        ("title = 'it''s; -- /* not a comment'", ("title",)),
        ("title = 'größer 木 🙂'", ("title",)),
        ("title = 'a\nb' -- comment", ("title",)),
        ("/* ) */ true", ()),
        ("(" * 90 + "pages" + ")" * 90 + " > 1", ("pages",)),
        (" AND ".join(["pages > 1"] * 700), ("pages",)),
    ],
)
def test_condition_over_documents_is_accepted_with_the_columns_it_reads(expression, columns):
    where = parse_where(expression)
    assert where.columns == columns
    names = ", ".join(f'NULL::{schema.DUCKDB_TYPES[field.type]} AS "{field.name}"' for field in schema.DOCUMENTS)
    with duckdb.connect() as connection:
        connection.execute(f"SELECT 1 FROM (SELECT {names}) AS documents WHERE {where.sql}")


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "where is empty"),
        (" \n", "where is empty"),
        ("-- nothing", "syntax error"),
        ("true; DROP TABLE documents", "syntax error"),
        ("true;", "syntax error"),
        (") OR (true", "syntax error"),
        ("true) OR (true", "syntax error"),
        ("true) UNION SELECT (1", "it is more than one expression"),
        ("true UNION ALL SELECT 1", "syntax error"),
        ("true) GROUP BY ALL HAVING (true", "it is more than one expression"),
        ("true ORDER BY 1", "syntax error"),
        ("true LIMIT 1", "syntax error"),
        ("true QUALIFY true", "syntax error"),
        ("true USING SAMPLE 1", "syntax error"),
        ("true /*", "comment"),
        ("title = 'open", "unterminated"),
        ("title = 'a' 'b' 'c", "unterminated"),
        ("$$open", "$$open"),
        ("title AS other", "syntax error"),
        ("(SELECT true)", "a subquery is not allowed"),
        ("EXISTS (FROM runs)", "a subquery is not allowed"),
        ("path IN (SELECT uri FROM document_history)", "a subquery is not allowed"),
        ("title = ANY(tags)", "a subquery is not allowed"),
        ("lower((SELECT title)) = 'a'", "a subquery is not allowed"),
        ("CASE WHEN true THEN (SELECT true) END", "a subquery is not allowed"),
        ("count(*) OVER () > 1", "a window function is not allowed"),
        ("count(*) > 1", "the function 'count_star' is not allowed"),
        ("max(pages) > 1", "the function 'max' is not allowed"),
        ("unnest(tags) = 'a'", "the function 'unnest' is not allowed"),
        ("getenv('HOME') = 'x'", "the function 'getenv' is not allowed"),
        ("current_setting('threads') = '1'", "the function 'current_setting' is not allowed"),
        ("getvariable('x') = 1", "the function 'getvariable' is not allowed"),
        ("nextval('s') > 0", "the function 'nextval' is not allowed"),
        ("error('x')", "the function 'error' is not allowed"),
        ("read_text('/etc/passwd') = ''", "the function 'read_text' is not allowed"),
        ("len(repeat('x', 1000000000)) > 1", "the function 'repeat' is not allowed"),
        ("lowr(title) = 'a'", "did you mean 'lower'?"),
        ("system.main.lower(title) = 'a'", "write lower(...) instead of system.main.lower(...)"),
        ("title.lower() = 'a'", "write lower(...)"),
        ("lower(title) FILTER (WHERE true) = 'a'", "takes no DISTINCT, FILTER or ORDER BY"),
        ("lower(DISTINCT title) = 'a'", "takes no DISTINCT"),
        ("lower(title ORDER BY 1) = 'a'", "takes no DISTINCT"),
        ("now() > modified_at", "now() is not allowed: a filter means the same whenever it is asked"),
        ("modified_at < current_date", "current_date is not allowed"),
        ("modified_at < CURRENT_TIMESTAMP", "current_timestamp is not allowed"),
        ("random() < 0.5", "random() is not allowed"),
        ("titel = 'a'", "there is no column 'titel' of documents; did you mean 'title'?"),
        ("rowid > 1", "there is no column 'rowid'"),
        ("doc = 1", "there is no column 'doc'"),
        ("runs.run_id = 'a'", "there is no column 'runs.run_id'"),
        ("main.documents.title = 'a'", "there is no column 'main.documents.title'"),
        ("len(list_filter(tags, lambda tag: other = 'a')) > 0", "there is no column 'other'"),
        ("tag AND len(list_filter(tags, lambda tag: true)) > 0", "there is no column 'tag'"),
        ("*", "* or COLUMNS is not allowed"),
        ("COLUMNS('.*') = 1", "* or COLUMNS is not allowed"),
        ("#1 = 1", "a column by number is not allowed"),
        ("pages = $1", "a parameter is not allowed"),
        ("pages = ?", "a parameter is not allowed"),
        ("title COLLATE NOCASE = 'a'", "COLLATE is not allowed"),
        ("title::mood = 'a'", "the type mood is not allowed"),
        ("title::ENUM('a') = 'a'", "the type ENUM is not allowed"),
        ("title::main.mood = 'a'", "the type main.mood is not allowed"),
        ("{'a': 1}.a = 1", "not allowed"),
        ("title = '\0'", "NUL"),
        ("(" * 4000 + "true" + ")" * 4000, "it is nested more than 100 deep"),
        ("NOT " * 2000 + "true", "it is nested more than 100 deep"),
        ("abs(" * 150 + "1" + ")" * 150, "it is nested more than 100 deep"),
        ("[" * 4000 + "]" * 4000, "it is nested more than 100 deep"),
        ("+".join(["pages"] * 1500), "it is nested more than 100 deep"),
        ("title = '" + "x" * LONGEST + "'", f"at most {LONGEST} are read"),
    ],
)
def test_anything_else_is_refused_in_one_line(expression, problem):
    with pytest.raises(SettingsError, match=r"^where ") as told:
        parse_where(expression)
    assert problem in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 300


PIECES = (
    "true title pages 'a' ' \" '' ( ) [ ] , ; -- /* */ $$ $1 OR AND NOT = < -> || :: . UNION WHERE lower( "
    "getenv('HOME') IN CASE WHEN THEN ELSE END * É 🙂 \\ E' { } lambda x: SELECT FROM documents LIMIT OVER() count(*)"
)
EXPECTED_NODES = {"COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN", "CAST", "CASE", "FUNCTION", "LAMBDA"}


def nodes(tree):
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else ():
        yield from nodes(part)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES.split(), "\n", "(SELECT 1)"]) | st.text(max_size=3), min_size=1, max_size=8).map(
        " ".join
    )
)
def test_whatever_is_accepted_stands_as_one_condition_in_its_place(expression):
    """It joins two conditions and removes neither of them; nothing in it reaches further."""
    try:
        where = parse_where(expression)
    except SettingsError:
        return
    statement = f"SELECT 1 FROM documents WHERE 'before' = source AND {where.sql} AND 'after' = source"
    with duckdb.connect() as connection:
        read = json.loads(connection.execute("SELECT json_serialize_sql($1)", [statement]).fetchall()[0][0])
    assert not read["error"]
    (only,) = read["statements"]
    condition = only["node"]["where_clause"]
    assert condition["type"] == "CONJUNCTION_AND"
    ends = [condition["children"][0], condition["children"][-1]]
    assert [end["left"]["literal"]["text"] for end in ends] == ["before", "after"]
    assert {node["class"] for node in nodes(condition) if "class" in node} <= {
        *EXPECTED_NODES, "CONSTANT", "COLUMN_REF", "TYPE"
    }  # fmt: skip
    called = {node["function_name"] for node in nodes(condition) if "function_name" in node}
    assert called <= FUNCTIONS
    with pytest.raises(StopIteration):
        next(node for node in nodes(condition) if node.get("class") in ("SUBQUERY", "WINDOW", "PARAMETER", "STAR"))


def test_every_allowed_function_is_a_scalar_function_of_duckdb_or_a_shape_of_its_parser():
    """Names that DuckDB gives to a table function or an aggregate do not belong in the list."""
    with duckdb.connect() as connection:
        kinds = connection.execute(
            "SELECT function_name, list(DISTINCT function_type) FROM duckdb_functions() GROUP BY 1"
        )
        known = dict(kinds.fetchall())
    parsed_only = {"if", "position", "ifnull", "->"}
    assert {name for name in FUNCTIONS - parsed_only if name not in known} == set()
    wrong = {name: known[name] for name in FUNCTIONS & known.keys() if not set(known[name]) <= {"scalar", "macro"}}
    assert wrong == {}
