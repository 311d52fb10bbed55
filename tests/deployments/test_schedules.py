"""Schedules are checked, and their next run computed, without Prefect and with the same result."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.client.schemas.schedules import CronSchedule
from prefect.server.schemas.schedules import CronSchedule as ServerSchedule
from pydantic import ValidationError

from parquetry.settings.schedule import check_cron, next_run

TAKEN = [
    "* * * * *",
    "*/5 9-17 * * mon-fri",
    "0 3 1,15 jan-mar *",
    "30 4 * * 5#2",
    "0 0 L * *",
    "0 0 29 2 *",
    "0 0 10-20/50 * *",
    "0 3 * * * 30",
    "@daily",
]
REFUSED = ["", "hourly", "* * * *", "60 * * * *", "* 24 * * *", "0 0 32 * *", "0 0 15W * *", "H * * * *", "0 0 31 2 *"]
FIELDS = "* */5 0 7 12 31 59 60 1-5 5-1 1,2,3 L mon sat-sun jan mon#2 ? W 15W R H R(0-5) h(1-3) */0 */61 1-10/3"
FIELD = st.sampled_from([*FIELDS.split(), "10-20/50", "1.5", "-1", "0-7", "7-1"])


def prefect_takes(cron: str) -> bool:
    try:
        CronSchedule(cron=cron)
    except ValidationError:
        return False
    return True


def is_taken(cron: str) -> bool:
    try:
        check_cron(cron)
    except ValueError as error:
        return str(error) == "never fires"
    return True


@pytest.mark.parametrize("cron", TAKEN)
def test_expression_that_prefect_takes_is_accepted_and_its_next_run_is_prefects(cron):
    assert prefect_takes(cron)
    check_cron(cron)
    after = datetime(2026, 2, 27, 23, 59, 30, 500, tzinfo=UTC)
    found = next_run(cron, after)
    assert found > after
    # Prefect's list begins with the given second, if the schedule fires on it.
    (expected,) = asyncio.run(ServerSchedule(cron=cron, timezone="UTC").get_dates(1, start=after))
    assert found == expected


@pytest.mark.parametrize("cron", REFUSED)
def test_expression_that_prefect_refuses_or_that_never_fires_is_refused(cron):
    with pytest.raises(ValueError, match=r"is not a cron expression|never fires"):
        check_cron(cron)


@given(st.lists(FIELD, min_size=4, max_size=7).map(" ".join))
def test_expression_of_any_fields_is_judged_as_prefect_does(cron):
    # Prefect refuses `R`, but accepts `R(0-5)` by oversight: no schedule is chosen at random here.
    assert is_taken(cron) == (prefect_takes(cron) and "R(" not in cron)


def test_next_run_is_later_than_the_given_time_and_in_utc():
    at_three = datetime(2026, 6, 1, 3, tzinfo=UTC)
    assert next_run("0 3 * * *", at_three) == at_three + timedelta(days=1)
    elsewhere = datetime(2026, 6, 1, 4, 30, tzinfo=timezone(timedelta(hours=2)))
    assert next_run("0 3 * * *", elsewhere) == at_three
    assert next_run("0 3 * * *", elsewhere).tzinfo is UTC


def test_schedule_whose_year_is_past_has_no_next_run():
    with pytest.raises(ValueError, match=r"'0 3 1 1 \* 0 2020' does not fire after 2026-06-01 00:00"):
        next_run("0 3 1 1 * 0 2020", datetime(2026, 6, 1, tzinfo=UTC))
