"""Schedules of sources: cron expressions that Prefect accepts, and their run times. Does not import Prefect."""

from __future__ import annotations

from datetime import UTC, datetime

EXAMPLE = "0 3 * * *"
"""every night at three"""
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def check_cron(cron: str) -> None:
    """Accept a cron expression that Prefect supports and that fires at some time.

    Prefect checks with its own copy of croniter, which refuses random and hashed fields. This function refuses them,
    too, and also an impossible date, which would fail in Prefect's scheduler.

    Args:
        cron: five fields (minute, hour, day, month, weekday), with an optional sixth for seconds and seventh for the
            year, or a name such as `@daily`.

    Raises:
        ValueError: it is invalid or never fires; the message is a predicate, such as "is not a cron expression".
    """
    from croniter import CroniterBadDateError, croniter

    if not croniter.is_valid(cron) or _is_beyond_prefect(cron):
        raise ValueError("is not a cron expression")
    try:
        croniter(cron, _ANY_TIME).get_next(datetime)
    except CroniterBadDateError as error:
        raise ValueError("never fires") from error


def next_run(cron: str, after: datetime) -> datetime:
    """Return the first time that a schedule fires after a given time.

    Args:
        cron: expression accepted by `check_cron`, as every `schedule` in loaded settings is.
        after: time with a time zone; the result is later.

    Returns:
        Time in UTC, the time zone of all schedules.

    Raises:
        ValueError: it never fires again, because its year has passed.
    """
    from croniter import CroniterBadDateError, croniter

    try:
        found: datetime = croniter(cron, after.astimezone(UTC)).get_next(datetime)
    except CroniterBadDateError as error:
        raise ValueError(f"schedule {cron!r} does not fire after {after:%Y-%m-%d %H:%M}") from error
    return found


def _is_beyond_prefect(cron: str) -> bool:
    """Return True if croniter 6.2 accepts fields that Prefect refuses: random, hashed, or nearest weekday."""
    fields = cron.casefold().split()
    drawn = any(field[0] in "rh" and field[1:2] in ("", "(") for field in fields)
    return drawn or (len(fields) > 2 and "w" in fields[2])
