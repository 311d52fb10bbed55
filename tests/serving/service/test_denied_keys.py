"""Conditions on metadata that no answer shows are met by nothing: answers to them would tell their values."""

import pytest

from parquetry.serving.chat.agents import both
from parquetry.serving.service.request_filters import RequestFilters, filters_of
from parquetry.settings.serving import DenylistSettings
from parquetry.storage.search.attribute_conditions import AttributeGroup
from parquetry.storage.search.filters import Filters

NOTHING = AttributeGroup("or", ())
DENYLISTS = DenylistSettings(knowledge=("salary", "dc.rights"), entries=("session",))


def attributes_of(path, what="documents"):
    return filters_of(RequestFilters(metadata={path: 1}), what, DENYLISTS).attributes


@pytest.mark.parametrize("path", ["salary", "salary.base", "dc.rights", "dc.rights.holder"])
def test_denied_key_and_what_is_below_it_is_nobodys(path):
    assert attributes_of(path) == NOTHING


@pytest.mark.parametrize("path", ["salaries", "dc", "dc.title", "person.salary", "session"])
def test_other_keys_of_documents_are_conditions(path):
    assert attributes_of(path) is None


def test_entries_have_their_own_list_and_both_have_both():
    assert (attributes_of("session", "entries"), attributes_of("salary", "entries")) == (NOTHING, None)
    assert (attributes_of("session", "both"), attributes_of("salary", "both")) == (NOTHING, NOTHING)


def test_conditions_of_an_agent_and_of_a_request_hold_both():
    denied = filters_of(RequestFilters(metadata={"salary": 1}), denylists=DENYLISTS)
    assert both(Filters(filename="*.md"), denied).attributes == AttributeGroup("and", (NOTHING,))
    assert both(denied, denied).attributes == AttributeGroup("and", (NOTHING, NOTHING))
    assert both(Filters(), Filters()).attributes is None
