"""Servers ask for a pause in seconds, in milliseconds or until a date."""

from __future__ import annotations

import pytest

from parquetry.net.response_headers import moment_of, retry_after

NOW = 1_929_960_000.0
"""Thu, 27 Feb 2031 12:00:00 GMT"""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "9" * 20}, 1e9),
        ({"retry-after": "Thu, 27 Feb 2031 12:01:30 GMT"}, 90.0),
        ({"retry-after": "Thu, 27 Feb 2031 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_pause_that_a_server_asks_for(headers, seconds):
    assert retry_after(headers, NOW) == seconds


def test_date_without_a_zone_is_in_utc():
    moment = moment_of("27 Feb 2031 12:00:00")
    assert moment is not None
    assert moment.timestamp() == NOW


def test_text_that_is_no_date_is_none():
    assert moment_of("yesterday") is None
