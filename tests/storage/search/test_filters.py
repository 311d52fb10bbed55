"""Documents that may answer are selected before anything is ranked."""

from datetime import UTC, datetime, timedelta

import pytest

from parquetry.errors import SettingsError
from parquetry.model import Access
from parquetry.storage.search.filters import Caller, Filters, select_visible, visible_statements
from parquetry.storage.search.metadata_conditions import MetadataComparison
from tests.storage.shelf import Shelf

MARCH, APRIL = datetime(2031, 3, 1, tzinfo=UTC), datetime(2031, 4, 1, tzinfo=UTC)
METADATA = {
    "author": "Ada",
    "place": {"town": "Ulm", "floors": [1, "two"]},
    "dc.title": "Oak",
    "draft": True,
    "pages": 3,
    "it's ~/odd?": "yes",
    "nothing": None,
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("library") / "corpus")

    def publish(path, **fields):
        shelf.publish({path: ["oak"]}, **{"metadata": {}, **fields})

    publish("a.md", access=Access(tags=("red", "new")), metadata=METADATA, modified_at=MARCH)
    publish("b.md", access=Access(tags=("red",)), source="wiki", modified_at=APRIL, title="nine")
    publish("c.md", namespace="hr", access=Access("individual", user_id="bob"), title="ten", modified_at=None)
    return shelf


def visible(shelf, filters):
    with shelf.connect() as connection:
        select_visible(connection, filters, columns=("filename",))
        found = connection.execute("SELECT filename FROM visible ORDER BY 1").fetchall()
    return "".join(name[0] for (name,) in found)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "abc"),
        ({"namespaces": ("hr", "other")}, "c"),
        ({"tags": ("red", "new")}, "a"),
        ({"any_tags": ("new", "other")}, "a"),
        ({"any_tags": ("red", "new"), "tags": ("red",)}, "ab"),
        ({"any_tags": ("other",)}, ""),
        ({"source": "wiki"}, "b"),
        ({"source": "wik%"}, ""),
        ({"filename": ""}, ""),
        ({"since": APRIL}, "b"),
        ({"until": APRIL}, "a"),
        ({"since": MARCH, "until": APRIL + timedelta(microseconds=1)}, "ab"),
        ({"where": "tags[1] = 'red' AND source <> 'wiki'"}, "a"),
        ({"where": "pages = 0 OR true", "namespaces": ("hr",)}, "c"),
        ({"where": "true -- ", "source": "wiki"}, "b"),
        ({"where": "documents.modified_at >= '2031-03-15'"}, "b"),
        ({"where": "CASE WHEN title = 'nine' THEN false ELSE true END"}, "ac"),
        ({"where": "NULL"}, ""),
    ],
)
def test_documents_that_meet_every_filter_are_visible(library, filters, expected):
    assert visible(library, Filters(**filters)) == expected


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("author", "Ada", True),
        ("author", "ada", False),
        ("place.town", "Ulm", True),
        ("place.floors", "1", True),
        ("place.floors", "two", True),
        ("place.floors", "three", False),
        ("place", "Ulm", False),
        ("dc.title", "Oak", True),
        ("draft", "true", True),
        ("pages", "3", True),
        ("it's ~/odd?", "yes", True),
        ("it's ~/odd?", "' OR true --", False),
        ("nothing", "null", False),
        ("missing.deep", "", False),
    ],
)
def test_metadata_is_found_by_dotted_path(library, path, value, found):
    assert visible(library, Filters(metadata=((path, value),))) == ("a" if found else "")


def test_every_metadata_pair_has_to_hold(library):
    both = (("author", "Ada"), ("draft", "true"))
    assert visible(library, Filters(metadata=both)) == "a"
    assert visible(library, Filters(metadata=(*both, ("pages", "4")))) == ""


ERRORS = [
    "title::INTEGER > 3",
    "strptime(title, '%Y') < modified_at",
    "1 = CASE WHEN path = 'c.md' THEN title::INT END",
]


@pytest.mark.parametrize("where", ERRORS)
def test_condition_that_fails_on_a_visible_document_is_one_line(library, where):
    with pytest.raises(SettingsError, match=r"^where .* cannot be computed: .*$") as told:
        visible(library, Filters(where=where, namespaces=("hr",), caller=Caller("bob")))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("where", [*ERRORS, "error_of_nothing = 1"])
def test_condition_tells_nothing_of_forbidden_documents(library, where):
    """It fails with the same message, or succeeds, as if they were not there."""

    def told(caller):
        try:
            return visible(library, Filters(where=where, namespaces=("hr",), caller=caller))
        except SettingsError as error:
            return str(error)

    assert told(Caller("eve")) == told(Caller("nobody"))
    assert "ten" not in told(Caller("eve"))


def test_empty_names_own_nothing(shelf):
    """A row without an owner, however it was written, belongs to no caller."""
    shelf.publish({"a.md": ["oak"]}, access=Access("individual", user_id=""))
    shelf.publish({"b.md": ["oak"]}, access=Access("organization", org_id=""))
    assert visible(shelf, Filters(caller=Caller("", ""))) == ""
    assert visible(shelf, Filters(caller=Caller())) == ""


def test_nothing_is_left_of_what_was_looked_at(library):
    """A connection that goes on to run SQL for the caller contains only the visible documents."""
    with library.connect() as connection:
        select_visible(connection, Filters(where="true", caller=Caller("ada")))
        tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    assert tables == [("visible",)]


def test_values_are_bound_and_not_written_into_statements():
    odd = "x' OR true --"
    filters = Filters((odd,), odd, (odd,), odd, Caller(odd, odd), (odd,), odd, MARCH, APRIL, (("key", odd),))
    statements = visible_statements(filters)
    assert not any(odd in statement.sql for statement in statements)
    assert sum(str(statement.parameters).count("OR true") for statement in statements) == 9


def test_filters_are_keys_of_a_cache():
    one = Filters(("hr",), tags=("a",), caller=Caller("ada"), metadata=(("a", "b"),), since=MARCH)
    assert {one: 1}[Filters(("hr",), tags=("a",), caller=Caller("ada"), metadata=(("a", "b"),), since=MARCH)] == 1
    assert Filters(caller=Caller("ada")) != Filters(caller=Caller(org_id="ada"))


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"since": datetime(2031, 3, 1)}, "since 2031-03-01T00:00:00 has no time zone; write 2031-03-01T09:30Z"),
        ({"until": datetime(2031, 3, 1)}, "until 2031-03-01"),
        ({"metadata": (("a..b", "c"),)}, "'a..b' is no path into metadata"),
        ({"metadata": (("", "c"),)}, "'' is no path into metadata"),
    ],
)
def test_filter_that_means_nothing_is_refused(filters, problem):
    with pytest.raises(SettingsError) as told:
        Filters(**filters)
    assert problem in str(told.value)


@pytest.mark.parametrize(
    ("path", "operator", "values", "found"),
    [
        ("pages", "gte", (3,), "a"),
        ("pages", "gt", (3,), ""),
        ("pages", "lt", (10,), "a"),  # as numbers: "10" is less than "3" as text
        ("pages", "lte", (2.5,), ""),
        ("pages", "eq", (3.0,), "a"),
        ("pages", "in", (1, 3), "a"),
        ("pages", "in", (), ""),
        ("author", "in", ("Bob", "Ada"), "a"),
        ("author", "gte", ("Ada",), "a"),
        ("author", "gt", (1,), ""),  # no number
        ("place.town", "lt", ("V",), "a"),
        ("dc.title", "eq", ("Oak",), "a"),
        ("it's ~/odd?", "eq", ("yes",), "a"),
        ("missing", "lt", (1,), ""),
        ("nothing", "eq", ("null",), ""),
    ],
)
def test_values_of_the_metadata_are_compared(library, path, operator, values, found):
    assert visible(library, Filters(comparisons=(MetadataComparison(path, operator, values),))) == found


def test_comparison_is_bound_and_never_sql(library):
    hostile = "' OR true --"
    assert visible(library, Filters(comparisons=(MetadataComparison("author", "eq", (hostile,)),))) == ""
    assert visible(library, Filters(comparisons=(MetadataComparison(hostile, "eq", ("Ada",)),))) == ""


def test_documents_of_a_user_and_of_an_origin(library):
    assert visible(library, Filters(user_id="bob")) == "c"
    assert visible(library, Filters(origin="wiki")) == "b"
    assert visible(library, Filters(origin="docs")) == "ac"
