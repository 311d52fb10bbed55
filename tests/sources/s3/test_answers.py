"""Times in S3's answers are those that botocore's own parser finds."""

import pytest
from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp

from parquetry.sources.s3.answers import time_of


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-27T08:00:30.000Z",
        "2026-11-27T08:00:30Z",
        "2026-11-27T09:00:30.5+01:00",
        "Fri, 27 Nov 2026 08:00:30 GMT",
        "Fri, 27 Nov 2026 08:00:30 +0100",
        "2026-11-27T08:00:30",
        "1764230430",
        1764230430,
        1764230430.25,
    ],
)
def test_time_is_botocores(written):
    assert time_of(written) == parse_timestamp(written)


@pytest.mark.parametrize(
    "written", ["", "yesterday", "2026-13-40T00:00:00Z", "9" * 300, "Fri, 27 Nov 2026 25:00:00 GMT"]
)
def test_what_is_no_time_is_an_error_in_a_short_line(written):
    with pytest.raises(ResponseParserError, match="an invalid time: ") as raised:
        time_of(written)
    assert len(str(raised.value)) < 100
