"""Conditions on attributes are typed, and obey and, or and not; parts of namespaces hold what was attached to them."""

import pytest

from parquetry.sources.uploads.identity import STORE_KEY, UPLOADS, store_folder
from parquetry.storage.search.attribute_conditions import AttributeComparison, AttributeGroup
from parquetry.storage.search.filters import Filters, Subset
from tests.storage.search.test_filters import visible
from tests.storage.shelf import Shelf

OWN = {STORE_KEY: {"id": "vs_1", "attributes": ["team", "year", "draft", "it's ~/odd.?"]}}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("attributes") / "corpus")

    def publish(path, metadata, **fields):
        shelf.publish({path: ["oak"]}, metadata=metadata, source=UPLOADS, **fields)

    attributes = {"team": "blue", "year": 2020, "draft": True, "it's ~/odd.?": "yes"}
    publish("~/vs_1/a.md", {**attributes, "author": "Ada", **OWN})
    publish("~/vs_1/b.md", {"team": "red", "year": "2020", **OWN})
    publish("~/vs_10/c.md", {"team": "blue", "author": "Ada"})
    publish("~/vs_1/d.md", {"team": "blue"}, namespace="hr")
    publish("vs_1/e.md", {})
    return shelf


def compared(key, operator, *values):
    return AttributeComparison(key, operator, values)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (compared("team", "eq", "blue"), "acd"),
        (compared("team", "ne", "blue"), "be"),
        (compared("team", "in", "blue", "red"), "abcd"),
        (compared("team", "nin", "blue", "red"), "e"),
        (compared("team", "in"), ""),
        (compared("team", "nin"), "abcde"),
        (compared("team", "gt", "blue"), "b"),
        (compared("year", "eq", 2020), "a"),
        (compared("year", "eq", "2020"), "b"),
        (compared("year", "gte", 2020.0), "a"),
        (compared("year", "lt", 2020), ""),
        (compared("draft", "eq", True), "a"),
        (compared("draft", "eq", "true"), ""),
        (compared("draft", "ne", True), "bcde"),
        (compared("it's ~/odd.?", "eq", "yes"), "a"),
        # The document's own metadata are no attributes of one that was attached.
        (compared("author", "eq", "Ada"), "c"),
        (compared("' OR true --", "eq", "' OR true --"), ""),
        (AttributeGroup("and", ()), "abcde"),
        (AttributeGroup("or", ()), ""),
        (AttributeGroup("and", (compared("team", "eq", "blue"), compared("year", "gt", 2000))), "a"),
        (
            AttributeGroup(
                "or",
                (compared("team", "eq", "red"), AttributeGroup("and", (compared("draft", "eq", True),))),
            ),
            "ab",
        ),
    ],
)
def test_attributes_are_compared(library, condition, found):
    assert names(visible(library, Filters(attributes=condition))) == found


@pytest.mark.parametrize(
    ("subsets", "found"),
    [
        ([Subset("default", store_folder("vs_1"))], "ab"),
        ([Subset("default", store_folder("vs_10"))], "c"),
        ([Subset("hr", store_folder("vs_1"))], "d"),
        ([Subset("hr"), Subset("default", store_folder("vs_10"))], "cd"),
        ([Subset("none")], ""),
    ],
)
def test_parts_of_namespaces(library, subsets, found):
    assert names(visible(library, Filters(subsets=tuple(subsets)))) == found


def names(found):
    return "".join(sorted(found))
