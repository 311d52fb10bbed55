"""Conditions on metadata compare as texts, numbers or times, in lists, and as the opposite."""

import pytest

from parquetry.storage.search.attribute_conditions import AttributeGroup
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.metadata_conditions import MetadataComparison
from tests.storage.search.test_filters import visible
from tests.storage.shelf import Shelf

DAY = 86_400
NEW_YEAR = 1_924_992_000
"""2031-01-01 in UTC, in seconds since 1970"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("metadata") / "corpus")

    def publish(path, metadata):
        shelf.publish({path: ["oak"]}, metadata=metadata)

    publish(
        "a.md", {"status": "final draft", "year": 2031, "labels": ["oak", "ash"], "when": "2031-01-01T02:00:00+02:00"}
    )
    publish("b.md", {"status": "draft", "year": "2030", "labels": [], "when": NEW_YEAR + DAY, "dc.title": "Oak's"})
    publish("c.md", {"status": "", "year": None, "labels": "oak, elm", "when": "2030-12-31", "dc": {"title": "Ash"}})
    publish("d.md", {"year": True, "labels": [2031], "when": "soon"})
    return shelf


def compared(path, operator, *values, negated=False):
    return MetadataComparison(path, operator, values, negated)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (compared("status", "is", "draft"), "b"),
        (compared("status", "is", "draft", "final draft"), "ab"),
        (compared("status", "is", "draft", negated=True), "acd"),
        (compared("year", "is", "2031"), "a"),
        (compared("year", "is", "true"), "d"),
        (compared("labels", "is", "ash"), "a"),
        (compared("labels", "is", "2031"), "d"),
        (compared("labels", "is", "oak", negated=True), "bcd"),
        (compared("status", "contains", "draft"), "ab"),
        (compared("status", "contains", "Draft"), ""),
        (compared("status", "contains", "draft", negated=True), "cd"),
        (compared("labels", "contains", "oak"), "ac"),
        # An item of a list, and not a part of its JSON.
        (compared("labels", "contains", '"'), ""),
        (compared("labels", "contains", "oa"), "c"),
        (compared("status", "starts", "final"), "a"),
        (compared("labels", "starts", "["), ""),
        (compared("status", "ends", "draft"), "ab"),
        (compared("status", "starts", "%"), ""),
        (compared("status", "empty"), "cd"),
        (compared("status", "empty", negated=True), "ab"),
        (compared("year", "empty"), "c"),
        (compared("labels", "empty"), "b"),
        (compared("nothing", "empty"), "abcd"),
        (compared("dc.title", "empty"), "ad"),
        (compared("year", "eq", 2030), "b"),
        (compared("year", "eq", 2030, negated=True), "acd"),
        (compared("year", "gt", 2030), "a"),
        (compared("year", "gte", 2030.0), "ab"),
        (compared("year", "lt", 2031), "b"),
        (compared("year", "lte", 2031), "ab"),
        (compared("when", "before", NEW_YEAR), "c"),
        (compared("when", "after", NEW_YEAR), "b"),
        (compared("when", "before", NEW_YEAR + 1), "ac"),
        (compared("when", "after", NEW_YEAR - 1), "ab"),
        (compared("dc.title", "is", "Oak's"), "b"),
        (compared("dc.title", "is", "Ash"), "c"),
        (compared("' OR true --", "is", "' OR true --"), ""),
        (compared("status", "is"), ""),
        (AttributeGroup("or", (compared("status", "is", "draft"), compared("year", "is", "true"))), "bd"),
        (AttributeGroup("and", (compared("status", "contains", "draft"), compared("labels", "empty"))), "b"),
    ],
    ids=str,
)
def test_a_condition_finds(library, condition, found):
    assert visible(library, Filters(attributes=condition)) == found
