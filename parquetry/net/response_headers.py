"""Header fields of HTTP responses, of pages, services and object stores."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_MOST_SECONDS = 1e9
"""longer waits are as good as never, and would not fit into a time"""


def moment_of(text: str | None) -> datetime | None:
    """Parse an HTTP date to UTC; return None if it is invalid."""
    try:
        moment = parsedate_to_datetime(text or "")
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that a server asks to wait; None if it does not ask.

    Args:
        headers: header fields of the response, by lower-case name.
        now: seconds since the epoch, for a date; None for the current time.

    Source: https://www.rfc-editor.org/rfc/rfc9110#name-retry-after; `retry-after-ms` is OpenAI's own.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name) or "") / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return min(seconds, _MOST_SECONDS)
    moment = moment_of(headers.get("retry-after"))
    return None if moment is None else max(0.0, moment.timestamp() - (time.time() if now is None else now))
