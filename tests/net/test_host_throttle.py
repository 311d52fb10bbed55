"""Request rate per host."""

import pytest

from parquetry.errors import TransientError
from parquetry.net.host_throttle import HostThrottle
from parquetry.net.rate_limiter import RateLimiter


@pytest.fixture
def slept():
    return []


@pytest.fixture
def pace():
    return HostThrottle(RateLimiter(now=lambda: 100.0))


def test_requests_to_one_host_follow_each_other_at_an_interval_and_others_do_not_wait(pace, slept):
    for url in ("http://a.example/1", "http://a.example/2", "http://b.example/", "http://a.example/3"):
        pace.wait(url, 2.0, slept.append)
    assert [seconds for index, seconds in enumerate(slept) if index % 2] == [0.0, 2.0, 0.0, 4.0]


def test_host_that_asks_for_a_short_rest_gets_it(pace, slept):
    pace.rest("http://a.example/", 30)
    pace.wait("http://a.example/x", 1.0, slept.append)
    pace.wait("http://b.example/x", 1.0, slept.append)
    assert slept[0] == pytest.approx(30, abs=1)
    assert slept[2] == 0.0


def test_host_that_asks_for_a_long_rest_is_left_to_a_later_try(pace, slept):
    pace.rest("http://a.example/", 3600)
    pace.rest("http://a.example/", 5)
    with pytest.raises(TransientError) as raised:
        pace.wait("http://a.example/x", 1.0, slept.append)
    assert (raised.value.reason, slept) == ("rate-limited", [])
    assert raised.value.retry_after == pytest.approx(3600, abs=2)
