"""Limits per minute on calls and tokens: no needless waiting, and no 60 seconds ever exceed the limit."""

from __future__ import annotations

import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parquetry.llm.rate_limit import MINUTE, ModelRateLimit, rate_limit_of


class Clock:
    """A clock that advances only while a caller sleeps."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


def rate_limit(clock: Clock, requests: float | None = None, tokens: float | None = None) -> ModelRateLimit:
    return ModelRateLimit(requests, tokens, clock.now, clock.sleep)


def test_without_a_limit_nobody_waits():
    clock = Clock()
    unlimited = rate_limit(clock)
    for _ in range(1000):
        unlimited.take(10**6)
    assert clock.slept == []


def test_a_minute_of_calls_goes_at_once_and_the_next_one_waits_for_the_first_to_be_a_minute_old():
    clock = Clock()
    limited = rate_limit(clock, requests=3)
    at = [limited.take(0).at - 1000 for _ in range(7)]
    assert at == [0, 0, 0, 60, 60, 60, 120]


def test_less_than_one_call_a_minute_is_a_longer_wait():
    clock = Clock()
    limited = rate_limit(clock, requests=0.5)
    assert [limited.take(0).at - 1000 for _ in range(3)] == [0, 120, 240]


def test_tokens_wait_until_enough_of_the_minute_before_is_over():
    clock = Clock()
    limited = rate_limit(clock, tokens=100)
    assert limited.take(60).at == 1000
    clock.seconds += 20
    assert limited.take(40).at == 1020
    assert limited.take(50).at == 1060, "sixty tokens are free again, forty are not"
    assert limited.take(60).at == 1120, "and for sixty both the forty and the fifty have to be over"


def test_what_a_call_really_took_counts_from_then_on():
    clock = Clock()
    limited = rate_limit(clock, tokens=100)
    turn = limited.take(90)
    limited.correct(turn, 10)
    assert limited.take(90).at == 1000
    limited.correct(turn, 11)
    assert limited.take(1).at == 1060


def test_a_call_above_the_limit_goes_alone():
    clock = Clock()
    limited = rate_limit(clock, tokens=100)
    limited.take(30)
    assert limited.take(5000).at == 1060
    assert limited.take(1).at == 1120


@given(
    st.lists(st.tuples(st.integers(0, 120), st.floats(0, 40)), max_size=40),
    st.integers(1, 6),
    st.integers(20, 200),
)
@example([(0, 1.6318124924948094), (0, 0.0), (0, 0.0)], 1, 20)
def test_no_sixty_seconds_hold_more_than_was_set(calls: list[tuple[int, float]], requests: int, tokens: int):
    clock = Clock()
    limited = rate_limit(clock, requests, tokens)
    taken = []
    for asked, pause in calls:
        clock.seconds += pause
        taken.append(limited.take(asked))
    for turn in taken:
        minute = [other for other in taken if turn.at <= other.at < turn.at + MINUTE - 1e-6]
        assert len(minute) <= requests
        assert sum(other.tokens for other in minute) <= tokens or len([o for o in minute if o.tokens]) == 1


def test_threads_share_one_limit():
    clock = Clock()
    limited = rate_limit(clock, requests=5)
    taken = []
    threads = [threading.Thread(target=lambda: taken.append(limited.take(1).at)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(at - 1000 for at in taken) == [0] * 5 + [60] * 5 + [120] * 5 + [180] * 5


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(("http://a/v1", "m", 5.0, None), True, id="same model"),
        pytest.param(("http://a/v1", "n", 5.0, None), False, id="another model"),
        pytest.param(("http://b/v1", "m", 5.0, None), False, id="another service"),
    ],
)
def test_a_process_has_one_quota_for_each_model_of_a_service(other, same):
    assert (rate_limit_of("http://a/v1", "m", 5.0, None) is rate_limit_of(*other)) == same
