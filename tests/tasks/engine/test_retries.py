"""Transient errors are retried with growing delays and counted; permanent ones are raised at once."""

import pytest

from parquetry.errors import BrokenDocument, SettingsError, TransientError
from parquetry.tasks.engine import retries as module
from parquetry.tasks.engine.base import Cancelled
from parquetry.tasks.engine.retries import BREAKER_THRESHOLD, LONGEST_ASKED, LONGEST_WAIT, Retries
from parquetry.tasks.engine.task_retries import batch_task

UNREACHABLE = TransientError("unreachable", "no answer")


class Script:
    """A call that raises the given errors, one after another, and then succeeds."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.tries = 0

    def __call__(self):
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def retries(pauses):
    return Retries(4, pauses.append)


@pytest.fixture
def no_jitter(monkeypatch):
    monkeypatch.setattr(module, "_JITTER", 0)


@pytest.mark.parametrize(
    "error",
    [
        UNREACHABLE,
        OSError(5, "Input/output error"),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError("timed out"),
    ],
    ids=["transient", "io-error", "reset", "timeout"],
)
def test_failure_that_may_pass_is_tried_again(retries, error):
    call = Script(error, error)
    assert retries.call("docs", call) == "done"
    assert (call.tries, retries.total) == (3, 2)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "gone"),
        PermissionError(13, "no"),
        NotADirectoryError(20, "a file"),
        BrokenDocument("damaged", "x"),
        SettingsError("no key"),
        OSError(28, "No space left on device"),
        KeyError("data"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_failure_that_will_not_pass_is_raised_at_once(retries, pauses, error):
    call = Script(error)
    with pytest.raises(type(error)):
        retries.call("docs", call)
    assert (call.tries, pauses, retries.total) == (1, [], 0)


def test_last_failure_is_raised_after_the_set_number_of_tries(retries):
    call = Script(*[UNREACHABLE] * 9)
    with pytest.raises(TransientError, match="no answer"):
        retries.call("docs", call)
    assert call.tries == 4


def test_waits_grow_up_to_a_bound(pauses, no_jitter):
    Retries(10, pauses.append).call("docs", Script(*[UNREACHABLE] * 9))
    assert pauses == [0.5, 1, 2, 4, 8, 16, LONGEST_WAIT, LONGEST_WAIT, LONGEST_WAIT]


def test_waits_differ_so_that_readers_do_not_come_back_together(pauses):
    retries = Retries(2, pauses.append)
    for _ in range(50):
        retries.call("docs", Script(UNREACHABLE))
    assert len(set(pauses)) > 40
    assert all(0.5 <= pause <= 0.75 for pause in pauses)


def test_wait_is_at_least_what_the_other_side_asks_for(retries, pauses):
    retries.call("docs", Script(TransientError("rate-limited", "slow down", retry_after=7)))
    assert 7 <= pauses[0] <= 10.5


def test_who_asks_for_a_longer_wait_than_a_run_has_is_left_alone(retries, pauses):
    call = Script(TransientError("rate-limited", "tomorrow", retry_after=LONGEST_ASKED + 1))
    with pytest.raises(TransientError, match="tomorrow"):
        retries.call("docs", call)
    assert (call.tries, pauses) == (1, [])


def test_cancelled_run_does_not_wait_to_the_end():
    def pause(seconds):
        raise Cancelled("was cancelled")

    call = Script(UNREACHABLE)
    with pytest.raises(Cancelled):
        Retries(4, pause).call("docs", call)
    assert call.tries == 1


def test_place_that_is_down_is_not_waited_for_again_and_again(retries, pauses):
    """A hundred thousand documents of an unreachable store must not take four attempts and several seconds each."""
    for _ in range(BREAKER_THRESHOLD):
        with pytest.raises(TransientError):
            retries.call("down", Script(*[UNREACHABLE] * 4))
    before = len(pauses)
    call = Script(*[UNREACHABLE] * 4)
    with pytest.raises(TransientError):
        retries.call("down", call)
    assert (call.tries, len(pauses)) == (1, before)
    assert retries.call("other", Script(UNREACHABLE)) == "done"


def test_place_that_comes_back_is_waited_for_again(retries):
    for _ in range(BREAKER_THRESHOLD):
        with pytest.raises(TransientError):
            retries.call("docs", Script(*[UNREACHABLE] * 4))
    assert retries.call("docs", Script()) == "done"
    assert retries.call("docs", Script(UNREACHABLE)) == "done"


def test_repeated_tries_are_told_by_place_and_reason(retries):
    retries.call("docs", Script(UNREACHABLE, UNREACHABLE))
    retries.call("web", Script(TransientError("rate-limited", "slow down")))
    assert retries.notes == ("docs: 2 tries were repeated (unreachable)", "web: 1 try was repeated (rate-limited)")


def test_batch_asks_prefect_for_no_slot():
    """Prefect asks its server for a slot of the concurrency limits of each tag, before each task that has tags."""
    assert batch_task(lambda number: number).tags == set()
