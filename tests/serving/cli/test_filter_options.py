"""The value of an option becomes a filter, or one line that explains the valid form."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from parquetry.errors import SettingsError
from parquetry.serving.cli.filter_options import FilterOptions, caller_of, moment
from parquetry.storage.search.filters import Caller, Filters

NOW = datetime(2031, 3, 31, 12, tzinfo=UTC)


def test_every_option_has_its_filter():
    given = FilterOptions(
        namespace=["hr", "it"],
        filename="*.md",
        tag=["a"],
        any_tag=["b", "c"],
        media_type="text/plain",
        source="wiki",
        since="2031-03-01",
        until="2031-04-01T00:00+02:00",
        metadata=["author.name=Ada", "formula=a=b", "empty="],
        where="pages > 1",
        user="ada",
        org="acme",
    ).filters()
    assert given == Filters(
        namespaces=("hr", "it"),
        filename="*.md",
        tags=("a",),
        any_tags=("b", "c"),
        media_type="text/plain",
        source="wiki",
        since=datetime(2031, 3, 1, tzinfo=UTC),
        until=datetime(2031, 4, 1, tzinfo=timezone(timedelta(hours=2))),
        metadata=(("author.name", "Ada"), ("formula", "a=b"), ("empty", "")),
        where="pages > 1",
        caller=Caller("ada", "acme"),
    )


def test_no_option_is_no_filter():
    assert FilterOptions().filters() == Filters()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2031-03-01", datetime(2031, 3, 1, tzinfo=UTC)),
        ("2031-03-01T09:30", datetime(2031, 3, 1, 9, 30, tzinfo=UTC)),
        ("2031-03-01 09:30Z", datetime(2031, 3, 1, 9, 30, tzinfo=UTC)),
        ("12h", datetime(2031, 3, 31, tzinfo=UTC)),
        ("30d", datetime(2031, 3, 1, 12, tzinfo=UTC)),
        ("2w", datetime(2031, 3, 17, 12, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_dates_moments_and_ages(text, expected):
    assert moment(text, "--since", NOW) == expected


@pytest.mark.parametrize("text", ["yesterday", "", "30", "3m", "-3d", "2031-02-30", "999999w", "2031"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(SettingsError, match=r"--since .* is no time; write 2031-03-01"):
        moment(text, "--since", NOW)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"metadata": ["author"]}, "--metadata 'author' has no value; write PATH=VALUE"),
        ({"metadata": ["=Ada"]}, "'' is no path into metadata"),
        ({"where": "SELECT 1"}, "where 'SELECT 1'"),
    ],
)
def test_option_that_means_nothing_is_refused(options, problem):
    with pytest.raises(SettingsError) as told:
        FilterOptions(**options).filters()
    assert problem in str(told.value)


def test_empty_name_is_nobodys_and_not_the_operators():
    assert caller_of("", None) == Caller("")
    assert caller_of(None, "") == Caller(org_id="")


def test_nobody_named_is_the_operator():
    assert caller_of(None, None) is None
    assert caller_of("ada", None) == Caller("ada")
    assert caller_of(None, "acme") == Caller(org_id="acme")
