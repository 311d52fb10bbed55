"""Rate limits of a service: one request after another, shared by all callers."""

import pytest

from parquetry.net.rate_limiter import RateLimiter, host_of


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_turns_at_one_service_are_a_set_time_apart(clock):
    turns = RateLimiter(clock)
    assert [turns.reserve("https://a", 4) for _ in range(4)] == [0, 0.25, 0.5, 0.75]


def test_services_do_not_wait_for_each_other(clock):
    turns = RateLimiter(clock)
    assert turns.reserve("https://a", 1) == 0
    assert turns.reserve("https://b", 1) == 0


def test_time_that_passed_unused_is_not_saved_up(clock):
    turns = RateLimiter(clock)
    turns.reserve("https://a", 2)
    clock.now += 60
    assert [turns.reserve("https://a", 2) for _ in range(3)] == [0, 0.5, 1]


def test_callers_with_different_rates_share_one_queue(clock):
    turns = RateLimiter(clock)
    assert [turns.reserve("https://a", rate) for rate in (1, 4, 4)] == [0, 1, 1.25]


@pytest.mark.parametrize(
    ("uri", "host"),
    [
        ("s3://bucket/kb/a.md", "s3://bucket"),
        ("https://Example.org:8443/x?y#z", "https://example.org:8443"),
        ("sftp://ada:secret@files.example.org/docs", "sftp://files.example.org"),
        ("vercel-blob://", "vercel-blob://"),
    ],
)
def test_host_is_the_service_without_path_or_password(uri, host):
    assert host_of(uri) == host
