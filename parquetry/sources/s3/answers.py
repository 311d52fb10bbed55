"""Times in S3's answers, parsed at once: botocore's own parser takes longer than all else of a listing."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

_SHOWN = 40
"""characters of an invalid time that an error shows"""


def time_of(value: Any) -> datetime:
    """Parse a time as S3 writes it: ISO 8601 in listings, RFC 1123 in headers.

    Args:
        value: a text, or a number for forms that only botocore knows.

    Raises:
        ResponseParserError: it is invalid.
    """
    for parse in (datetime.fromisoformat, parsedate_to_datetime) if isinstance(value, str) else ():
        try:
            found = parse(value)
        except (TypeError, ValueError):
            continue
        if found.tzinfo is not None:
            return found
    from botocore.parsers import ResponseParserError
    from botocore.utils import parse_timestamp

    try:
        parsed: datetime = parse_timestamp(value)
    except (ValueError, RuntimeError) as error:
        raise ResponseParserError(f"the server sent an invalid time: {str(value)[:_SHOWN]!r}") from error
    return parsed
