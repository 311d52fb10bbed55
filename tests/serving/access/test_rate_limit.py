"""Each token has a bucket of its own, and is told when to come again."""

import threading

import pytest

from parquetry.serving.access import rate_limit
from parquetry.serving.access.rate_limit import RequestLimiter
from parquetry.serving.access.refusals import RateLimited


class Clock:
    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


def admitted(limiter, key, tries):
    count = 0
    for _ in range(tries):
        try:
            limiter.admit(key)
        except RateLimited:
            continue
        count += 1
    return count


def test_a_minute_of_requests_may_come_at_once_and_no_more():
    limiter = RequestLimiter(60, Clock())
    assert admitted(limiter, "a", 100) == 60
    assert admitted(limiter, "b", 100) == 60, "another token has its own bucket"


@pytest.mark.parametrize(("per_minute", "seconds"), [(1, 60), (2, 30), (60, 1), (6000, 1)])
def test_refusal_names_the_seconds_after_which_a_request_is_admitted(per_minute, seconds):
    clock = Clock()
    limiter = RequestLimiter(per_minute, clock)
    assert admitted(limiter, "a", per_minute + 1) == per_minute
    with pytest.raises(RateLimited) as refusal:
        limiter.admit("a")
    assert (refusal.value.retry_after, refusal.value.status) == (seconds, 429)
    clock.seconds += refusal.value.retry_after
    limiter.admit("a")


def test_bucket_refills_steadily_and_not_beyond_its_size():
    clock = Clock()
    limiter = RequestLimiter(60, clock)
    assert admitted(limiter, "a", 60) == 60
    clock.seconds += 10
    assert admitted(limiter, "a", 60) == 10
    clock.seconds += 3600
    assert admitted(limiter, "a", 100) == 60


def test_threads_share_a_bucket():
    limiter, counts = RequestLimiter(500, Clock()), []
    threads = [threading.Thread(target=lambda: counts.append(admitted(limiter, "a", 200))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 500


def test_number_of_buckets_has_a_bound_and_the_busy_ones_stay(monkeypatch):
    monkeypatch.setattr(rate_limit, "MOST_KEYS", 10)
    limiter = RequestLimiter(5, Clock())
    for number in range(100):
        admitted(limiter, "busy", 1)
        limiter.admit(str(number))
    assert len(limiter._states) == 10
    assert admitted(limiter, "busy", 1) == 0
