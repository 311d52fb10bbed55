"""Schedules of sources: which cron expressions Prefect takes, and when they fire. Imports nothing of Prefect."""

from __future__ import annotations

from datetime import UTC, datetime

EXAMPLE = "0 3 * * *"
"""every night at three"""
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def check_cron(cron: str) -> None:
    """Accept a cron expression that a Prefect schedule takes and that fires at all.

    Prefect checks with its own copy of croniter and takes no random or hashed fields. Nor does this; and it refuses a
    date that no calendar has, on which Prefect's scheduler would fail.

    Args:
        cron: five fields (minute, hour, day, month, weekday), with an optional sixth for seconds and seventh for the
            year, or a name as `@daily`.

    Raises:
        ValueError: it is neither; the message is a predicate, as "is not a cron expression".
    """
    from croniter import CroniterBadDateError, croniter

    if not croniter.is_valid(cron) or _is_beyond_prefect(cron):
        raise ValueError("is not a cron expression")
    try:
        croniter(cron, _ANY_TIME).get_next(datetime)
    except CroniterBadDateError as error:
        raise ValueError("never fires") from error


def next_run(cron: str, after: datetime) -> datetime:
    """First time that a schedule fires after a given time.

    Args:
        cron: as `check_cron` accepts it, which every `schedule` of loaded settings is.
        after: with a time zone; the result is later than this.

    Returns:
        A time in UTC, which is the time zone of all schedules.

    Raises:
        ValueError: it never fires again, because its year is past.
    """
    from croniter import CroniterBadDateError, croniter

    try:
        found: datetime = croniter(cron, after.astimezone(UTC)).get_next(datetime)
    except CroniterBadDateError as error:
        raise ValueError(f"schedule {cron!r} does not fire after {after:%Y-%m-%d %H:%M}") from error
    return found


def _is_beyond_prefect(cron: str) -> bool:
    """Whether croniter 6.2 reads fields in it that Prefect refuses: random, hashed, or of the nearest weekday."""
    fields = cron.casefold().split()
    drawn = any(field[0] in "rh" and field[1:2] in ("", "(") for field in fields)
    return drawn or (len(fields) > 2 and "w" in fields[2])
