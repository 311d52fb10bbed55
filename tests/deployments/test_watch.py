"""Messages about failing services of a server and about schedules without runs: one at the start, one at the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from parquetry.deployments.command import complain
from parquetry.deployments.schedule_watch import LATE, Planned, troubles_of
from parquetry.deployments.server_log import QUIET_SECONDS, ServerLog
from parquetry.deployments.watch import Trouble, Watch

pytestmark = pytest.mark.slow

NOW = datetime(2026, 6, 1, 3, tzinfo=UTC)
FAILURE = """\
03:00:44.080 | ERROR   | docket.dependencies - ↩ [   793ms] schedule_deployments(){schedule_deployments}
Traceback (most recent call last):
  File "scheduler.py", line 273, in schedule_deployments
    inserted_runs = await models.deployments._insert_scheduled_flow_runs(
sqlalchemy.exc.InvalidRequestError: Can't evaluate bulk DML statement; please supply a bulk_dml decorated function
"""


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_trouble_is_said_once_and_once_when_it_is_over(clock):
    now: list[Trouble] = []
    said: list[str] = []
    watch = Watch([lambda: now], said.append, clock)
    watch.look()
    now.append(Trouble("a", "a fails", "a works again"))
    watch.look()
    watch.look()
    assert said == ["a fails"]
    now.clear()
    watch.look()
    watch.look()
    assert said == ["a fails", "a works again"]


def test_trouble_that_does_not_last_is_not_worth_a_line(clock):
    now = [Trouble("a", "a fails", "a works again", patience=60)]
    said: list[str] = []
    watch = Watch([lambda: list(now)], said.append, clock)
    watch.look()
    clock.seconds += 59
    watch.look()
    kept, now[:] = list(now), []
    watch.look()
    now[:] = kept
    for _ in range(2):
        watch.look()
        clock.seconds += 59
    assert said == []
    watch.look()
    assert said == ["a fails"]


def test_watch_that_fails_says_so_once_and_goes_on(clock):
    now: list[Trouble] = []
    said: list[str] = []
    failing = True

    def look() -> list[Trouble]:
        if failing:
            raise ValueError("half a record\nand more")
        return now

    watch = Watch([look], said.append, clock)
    watch.look_on()
    watch.look_on()
    assert said == ["the server is not watched: ValueError: half a record"]
    failing = False
    now.append(Trouble("a", "a fails", "a works again"))
    watch.look_on()
    assert said[1:] == ["a fails", "the server is watched again"]


def test_line_that_quotes_a_log_does_nothing_to_a_terminal(capsys):
    complain("ValueError: \x1b]0;owned\x07 and \x1b[2J")
    assert capsys.readouterr().err == "parquetry: ValueError: \\u{1b}]0;owned\\u{7} and \\u{1b}[2J\n"


def test_service_that_fails_in_the_log_is_named_with_its_error_until_it_is_quiet(tmp_path, clock):
    file = tmp_path / "server.log"
    file.write_text("Check out the dashboard\n03:00:01.000 | WARNING | prefect.server - slow\n")
    log = ServerLog(file, clock)
    assert list(log.look()) == []
    with file.open("a") as stream:
        stream.write(FAILURE)
    (trouble,) = log.look()
    assert trouble.line == (
        "the Prefect server's service schedule_deployments fails: sqlalchemy.exc.InvalidRequestError: Can't evaluate "
        f"bulk DML statement; please supply a bulk_dml decorated function; its log is {file}"
    )
    clock.seconds += QUIET_SECONDS - 1
    with file.open("a") as stream:
        stream.write(FAILURE)
    (again,) = log.look()
    assert again.key == trouble.key
    clock.seconds += QUIET_SECONDS + 1
    assert list(log.look()) == []


@pytest.mark.parametrize(
    ("record", "service"),
    [
        (
            "03:00:44.080 | ERROR   | prefect.server.services.foreman - An error occurred",
            "prefect.server.services.foreman",
        ),
        ("03:00:44.080 | CRITICAL | prefect.server.events.triggers - stopped", "prefect.server.events.triggers"),
        # A single request is not a service, and its client gets the error.
        ("03:00:44.080 | ERROR   | prefect.server - Encountered exception in request:", None),
        ("03:00:44.080 | WARNING | prefect.server.services.foreman - late", None),
    ],
)
def test_errors_of_services_alone_are_troubles(tmp_path, clock, record, service):
    file = tmp_path / "server.log"
    file.write_text(f"{record}\nTraceback (most recent call last):\n  File x\nValueError: no\n")
    assert [trouble.key for trouble in ServerLog(file, clock).look()] == ([f"service {service}"] if service else [])


def test_record_that_is_half_written_is_read_when_it_is_whole(tmp_path, clock):
    file = tmp_path / "server.log"
    log = ServerLog(file, clock)
    half = len(FAILURE) // 2
    file.write_text(FAILURE[:half])
    list(log.look())
    with file.open("a") as stream:
        stream.write(FAILURE[half:])
    (trouble,) = log.look()
    assert "InvalidRequestError: Can't evaluate bulk DML statement;" in trouble.line


def keys(planned: Planned) -> list[str]:
    return [trouble.key for trouble in troubles_of(planned, NOW, 60)]


def test_active_schedule_needs_a_run_to_come():
    to_come, started = NOW + timedelta(days=1), NOW - timedelta(seconds=30)
    assert keys(Planned("refresh/docs", True, [to_come])) == []
    assert keys(Planned("refresh/docs", True, [])) == ["unplanned refresh/docs"]
    assert keys(Planned("refresh/docs", True, [started])) == ["unplanned refresh/docs"]
    assert keys(Planned("refresh/docs", False, [])) == []


def test_run_that_has_not_started_long_after_its_time_is_late():
    waiting = [NOW - LATE, NOW + timedelta(days=1)]
    assert keys(Planned("refresh/docs", True, waiting)) == []
    (trouble,) = troubles_of(Planned("refresh/docs", True, [NOW - timedelta(hours=1), *waiting]), NOW, 60)
    assert trouble.line.startswith("refresh/docs was to start at 2026-06-01 02:00 UTC and has not")
